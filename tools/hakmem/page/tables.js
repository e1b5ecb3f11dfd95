// The table beside the graph: of the part that the graph shows, and of what was
// looked for. A row stands for a place, a function or a module.
const FIRST_ROWS = 30;
const MORE_ROWS = 100;
const CALLERS_SHOWN = 3;

class Tables {
  #byAll = false;
  #rows = FIRST_ROWS;

  // `act` has what a click does: point, lookFor, choose.
  constructor(act) {
    this.act = act;
    this.box = document.getElementById('table');
    this.count = document.getElementById('count');
  }

  // `kind` is places, functions or modules.
  fill(kind, tree, zoom, matches) {
    if (kind !== this.kind) this.#rows = FIRST_ROWS;
    Object.assign(this, {kind, tree, zoom, matches});
    const shown = tree.places.filter(({site, leaf}) => leaf.isBelow(zoom) && (!matches || matches.site(site)));
    this.rows = kind === 'places' ? shown : this.#sums(shown);
    const many = this.rows.length;
    this.count.textContent = exactText(many) + ' ' + (many === 1 ? kind.slice(0, -1) : kind);
    this.#draw();
  }

  #draw() {
    const isPlaces = this.kind === 'places';
    const columns = isPlaces ? this.#placeColumns() : this.#sumColumns();
    const head = element('tr', {}, ...columns.map(({className, title}) =>
      element('th', {scope: 'col', className: className || ''}, title)), element('th', {scope: 'col', className: 'name'}, this.kind.slice(0, -1)));
    const body = element('tbody', {});
    for (const row of this.rows.slice(0, this.#rows)) body.append(isPlaces ? this.#place(row, columns) : this.#sum(row, columns));
    const table = element('table', {className: 'figures ' + this.kind}, element('thead', {}, head), body);
    const widths = columns.map(({className}) => className === 'narrow' ? '3.9em' : '1fr');
    table.style.setProperty('--columns', widths.join(' '));
    this.box.replaceChildren(this.rows.length ? table : element('p', {className: 'muted'}, 'None.'));
    if (this.rows.length <= this.#rows) return;
    this.box.append(button({className: 'more'}, () => {
      const first = this.#rows;
      this.#rows += MORE_ROWS;
      this.#draw();
      this.box.querySelectorAll('tbody .link')[first].focus({preventScroll: true});
    }, 'Show more'));
  }

  #row(columns, row, share, name) {
    const cells = columns.map(column => element('td', {className: column.className || ''}, column.text(row)));
    const last = element('th', {scope: 'row', className: 'name'}, ...name);
    last.style.setProperty('--share', 100 * share + '%');
    return element('tr', {}, ...cells, last);
  }

  // The other values that are of the same profile, each a column.
  #placeColumns() {
    const bytesAt = at => ({site}) => site.sums[at] ? bytesText(site.sums[at]) : '-';
    const columns = [{title: 'share', className: 'narrow', text: ({site}) => shareText(site.sums[view.at], total())}];
    if (totals[view.at + 1] > 0) {
      columns.push({title: '±', className: 'narrow', text: ({site}) => errorText(site.sums[view.at + 1], site.sums[view.at])});
    }
    if (view.sign) {
      columns.unshift({title: view.name, className: 'shown ' + view.name,
        text: ({site}) => view.sign + bytesText(site.sums[view.at])});
      view.columns.forEach((column, i) => columns.push({title: column.title,
        text: ({site}) => cellText(column, site.sums[view.at + 2 + i])}));
      return columns;
    }
    for (const [i, other] of data.views.entries()) {
      if (other.sign) continue;
      const title = button({title: other.about}, () => this.act.choose(i), other.name.replace(/ after$/, ''));
      columns.push({title, className: other === view ? 'shown' : 'other', text: bytesAt(other.at)});
    }
    return columns;
  }

  #place(row, columns) {
    const {site, leaf} = row;
    const frames = [...site.frames].reverse();
    const texts = frames.map(textOf);
    if (frames.length === 0) texts.push('(no stack)');
    if (site.group >= 0) texts.push(data.groups[site.group]);
    const callers = frames.slice(1, 1 + CALLERS_SHOWN).map(frame => ' ← ' + bareName(nameOf(frame)));
    const place = frames.length ? placeOf(frames[0]).replace(/.*\//, ' ') : '';
    const link = button({className: 'link', title: texts[0], ariaExpanded: 'false'}, () => {
      const open = line.nextElementSibling?.className === 'stack';
      link.ariaExpanded = String(!open);
      if (open) {
        line.nextElementSibling.remove();
      } else {
        line.after(this.#stack(row, texts, columns.length + 1));
        this.act.point(leaf);
      }
    }, swatch(leaf.module), frames.length ? bareName(nameOf(frames[0])) : texts[0], element('span', {}, place, ...callers));
    const line = this.#row(columns, row, site.sums[view.at] / total(), [link]);
    return line;
  }

  // The callers of a place, and all of its numbers.
  #stack({site}, texts, width) {
    const list = element('ol', {}, ...texts.map(text => element('li', {}, text)));
    return element('tr', {className: 'stack'}, element('td', {colSpan: width}, list, figuresList(site.sums)));
  }

  // Of functions or modules, with what they call and without, each site once.
  #sums(places) {
    const rows = new Map();
    const isModules = this.kind === 'modules';
    for (const {site, leaf} of places) {
      const seen = new Set();
      for (let call = leaf; call && call.isBelow(this.zoom); call = call.parent) {
        const key = isModules ? call.module : call.key;
        if (call.module < 0 || seen.has(key)) continue;
        seen.add(key);
        if (this.matches && !isModules && !this.matches.call(call)) continue;
        let row = rows.get(key);
        if (!row) {
          const name = isModules ? data.modules[key] : call.name;
          rows.set(key, row = {name, module: call.module, itself: 0, all: 0});
        }
        row.all += site.sums[view.at];
        if (call === leaf) row.itself += site.sums[view.at];
      }
    }
    const order = this.#byAll ? ['all', 'itself'] : ['itself', 'all'];
    return [...rows.values()].sort((a, b) =>
      b[order[0]] - a[order[0]] || b[order[1]] - a[order[1]] || (a.name < b.name ? -1 : 1));
  }

  #sumColumns() {
    const sorter = (title, byAll) => button({ariaPressed: String(this.#byAll === byAll)}, () => {
      this.#byAll = byAll;
      this.fill(this.kind, this.tree, this.zoom, this.matches);
      this.box.querySelectorAll('thead button')[byAll ? 1 : 0].focus({preventScroll: true});
    }, title);
    const bytes = key => row => row[key] ? view.sign + bytesText(row[key]) : '-';
    const share = key => row => row[key] ? shareText(row[key], total()) : '-';
    return [
      {title: sorter('itself', false), text: bytes('itself'), className: this.#byAll ? 'other' : 'shown'},
      {title: 'share', className: 'narrow', text: share('itself')},
      {title: sorter('with calls', true), text: bytes('all'), className: this.#byAll ? 'shown' : 'other'},
      {title: 'share', className: 'narrow', text: share('all')},
    ];
  }

  #sum(row, columns) {
    const link = button({className: 'link', title: row.name}, () => this.act.lookFor(exactly(row.name)),
      swatch(row.module), row.name);
    return this.#row(columns, row, (this.#byAll ? row.all : row.itself) / total(), [link]);
  }
}
