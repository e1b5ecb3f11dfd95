// The data of the page, and each view of it as a tree of calls.
//
// data (profile_page.h): names[i] is a function; frames[i] is [name, text];
// groups[i] is a process. A site has frames, the outermost first, and for each
// view its figures or null: [bytes, error in bytes, one number per column].
const data = JSON.parse(document.getElementById('data').textContent);
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

function bytesText(bytes) {
  if (bytes === 1) return '1 byte';
  if (bytes < 1024) return Math.round(bytes) + ' bytes';
  let unit = 0;
  for (; bytes >= 1023.95 && unit + 1 < UNITS.length; ++unit) bytes /= 1024;
  return bytes.toFixed(1) + ' ' + UNITS[unit];
}

function cellText(column, number) {
  return column.bytes ? bytesText(number) : Math.round(number).toLocaleString('en');
}

function percentText(part, whole) {
  return whole > 0 ? (100 * part / whole).toFixed(1) + '%' : '-';
}

// Of a standard error: twice that, within which nine in ten estimates are.
function errorText(error, bytes) {
  return bytes > 0 ? '±' + Math.round(200 * error / bytes) + '%' : '';
}

// A sum of sites' figures.
class Figures {
  bytes = 0;
  variance = 0;
  columns = [];

  add(figures) {
    const [bytes, error, ...columns] = figures;
    this.bytes += bytes;
    this.variance += error * error;
    columns.forEach((number, i) => { this.columns[i] = (this.columns[i] || 0) + number; });
  }

  get error() { return Math.sqrt(this.variance); }
}

// A call in a tree, or its root, or a process below the root.
class Call {
  all = new Figures();
  itself = new Figures();
  children = [];
  start = 0;  // bytes of its earlier siblings, and of those of its callers

  constructor(parent, key, name, isFunction) {
    this.parent = parent;
    this.key = key;
    this.name = name;
    this.isFunction = isFunction;
    this.depth = parent ? parent.depth + 1 : 0;
    this.byKey = new Map();
  }

  child(key, name, isFunction) {
    let found = this.byKey.get(key);
    if (!found) {
      found = new Call(this, key, name, isFunction);
      this.byKey.set(key, found);
      this.children.push(found);
    }
    return found;
  }

  // From the root to this one.
  path() { return this.parent ? [...this.parent.path(), this] : [this]; }

  isBelow(other) {
    let at = this;
    while (at.depth > other.depth) at = at.parent;
    return at === other;
  }
}

class Tree {
  constructor(view) {
    this.root = new Call(null, 'all', 'everything', false);
    // The sites of the view: {site, figures, leaf}, those with most bytes first.
    this.places = [];
    data.sites.forEach(site => this.#add(site, site.figures[view]));
    this.places.sort((a, b) => b.figures[0] - a.figures[0]);
    Tree.#layOut(this.root);
  }

  #add(site, figures) {
    if (!figures) return;
    let at = this.root;
    at.all.add(figures);
    const step = (key, name, isFunction) => {
      at = at.child(key, name, isFunction);
      at.all.add(figures);
    };
    if (site.group !== undefined) step('group ' + site.group, data.groups[site.group], false);
    for (const frame of site.frames) {
      const name = data.frames[frame][0];
      step(name, data.names[name], true);
    }
    if (site.frames.length === 0) step('none', '(no stack)', false);
    at.itself.add(figures);
    this.places.push({site, figures, leaf: at});
  }

  static #layOut(call) {
    call.children.sort((a, b) => b.all.bytes - a.all.bytes || (a.name < b.name ? -1 : 1));
    let start = call.start;
    for (const child of call.children) {
      child.start = start;
      start += child.all.bytes;
      Tree.#layOut(child);
    }
  }

  // The call with the same callers as one of another tree, or its nearest caller.
  like(call) {
    let at = this.root;
    for (const step of call.path().slice(1)) {
      const next = at.byKey.get(step.key);
      if (!next) break;
      at = next;
    }
    return at;
  }
}
