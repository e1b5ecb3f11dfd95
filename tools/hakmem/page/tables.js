// The tables beside the graph: of the part that it shows, and of what was
// looked for.
const FIRST_ROWS = 12;
const MORE_ROWS = 50;
const CALLERS_SHOWN = 2;

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A table's row is two: the name, and below it the numbers, which so have room
// on any screen.
class Rows {
  constructor(id, titles) {
    this.box = document.getElementById(id);
    this.titles = titles;
    this.shown = FIRST_ROWS;
  }

  // `rows` is an array, `make` turns one of them into [content of its name, numbers as text, share of 1].
  fill(rows, make) {
    const table = element('table', {className: 'figures'});
    const head = element('tr', {});
    for (const title of this.titles()) head.append(element('th', {scope: 'col'}, ...[title].flat()));
    table.append(element('thead', {}, head));
    for (const row of rows.slice(0, this.shown)) {
      const [name, numbers, share] = make(row);
      const bar = element('span', {className: 'bar', ariaHidden: 'true'});
      bar.style.width = 100 * share + '%';
      const body = element('tbody', {},
        element('tr', {}, element('th', {scope: 'rowgroup', colSpan: numbers.length, className: 'name'}, ...name)),
        element('tr', {}, ...numbers.map(text => element('td', {}, text))));
      body.firstChild.firstChild.append(bar);
      table.append(body);
    }
    this.box.replaceChildren(rows.length ? table : element('p', {className: 'muted'}, 'None.'));
    if (rows.length <= this.shown) return;
    const more = element('button', {type: 'button'}, 'Show more of ' + rows.length.toLocaleString('en'));
    more.addEventListener('click', () => {
      this.shown += MORE_ROWS;
      this.fill(rows, make);
      this.box.querySelector('button')?.focus({preventScroll: true});
    });
    this.box.append(more);
  }
}

class Tables {
  #byAll = false;

  constructor(graph, lookFor) {
    this.graph = graph;
    this.lookFor = lookFor;
    this.places = new Rows('places', () => [
      'bytes', 'share', ...this.#errors('±'), ...this.#view().columns.map(column => column.title)]);
    this.functions = new Rows('functions', () => [
      this.#sorter('itself', false), 'share', this.#sorter('with calls', true), 'share']);
  }

  #view() { return data.views[this.graph.view]; }

  // Of a trace none are known.
  #errors(text) { return this.graph.tree.root.all.variance > 0 ? [text] : []; }

  fill(matches) {
    this.matches = matches;
    const {tree, zoom} = this.graph;
    const shown = tree.places.filter(({site, leaf}) => leaf.isBelow(zoom) &&
      (!matches || site.frames.some(frame => matches(data.names[data.frames[frame][0]]))));
    this.places.fill(shown, place => this.#place(place));
    const functions = [...this.#functionsOf(shown).values()];
    const order = this.#byAll ? ['all', 'itself'] : ['itself', 'all'];
    functions.sort((a, b) => b[order[0]] - a[order[0]] || b[order[1]] - a[order[1]] || (a.name < b.name ? -1 : 1));
    this.functions.fill(functions, row => this.#function(row));
  }

  #place({site, figures, leaf}) {
    const view = this.#view();
    const [bytes, error, ...columns] = figures;
    const total = this.graph.tree.root.all.bytes;
    const texts = site.frames.map(frame => data.frames[frame][1]).reverse();
    const process = site.group === undefined ? [] : [data.groups[site.group]];
    const first = element('button', {type: 'button', className: 'link', title: texts[0] || ''},
      texts[0] || '(no stack)');
    first.addEventListener('click', () => this.graph.zoomTo(leaf));
    const callers = [...texts.slice(1), ...process].map(text => element('span', {className: 'caller', title: text}, text));
    const name = [first, ...callers.slice(0, CALLERS_SHOWN)];
    const hidden = callers.slice(CALLERS_SHOWN);
    if (hidden.length === 1) name.push(...hidden);
    if (hidden.length > 1) {
      name.push(element('details', {}, element('summary', {}, hidden.length + ' more callers'), ...hidden));
    }
    return [name, [view.sign + bytesText(bytes), percentText(bytes, total),
      ...this.#errors(errorText(error, bytes)),
      ...view.columns.map((column, i) => cellText(column, columns[i] || 0))], bytes / total];
  }

  // Only calls of the part that the graph shows count.
  #functionsOf(places) {
    const functions = new Map();
    for (const {figures, leaf} of places) {
      const seen = new Set();
      for (let call = leaf; call && call.isBelow(this.graph.zoom); call = call.parent) {
        if (!call.isFunction || seen.has(call.name)) continue;
        seen.add(call.name);
        const row = functions.get(call.name) || {name: call.name, itself: 0, all: 0};
        functions.set(call.name, row);
        row.all += figures[0];
        if (call === leaf) row.itself += figures[0];
      }
    }
    return functions;
  }

  #function({name, itself, all}) {
    const sign = this.#view().sign;
    const total = this.graph.tree.root.all.bytes;
    const button = element('button', {type: 'button', className: 'link', title: name}, name);
    button.addEventListener('click', () => this.lookFor(name));
    return [[button], [sign + bytesText(itself), percentText(itself, total), sign + bytesText(all),
      percentText(all, total)], (this.#byAll ? all : itself) / total];
  }

  #sorter(title, byAll) {
    const button = element('button', {type: 'button', ariaPressed: String(this.#byAll === byAll)}, title);
    button.addEventListener('click', () => {
      this.#byAll = byAll;
      this.fill(this.matches);
      this.functions.box.querySelectorAll('thead button')[byAll ? 1 : 0].focus({preventScroll: true});
    });
    return button;
  }
}
