// The data of the page, and the sites of it as a tree of calls.
//
// data (profile_page.h): functions[i] is [name, module]; frames[i] is [function,
// place]; groups[i] is a process. A site is [group or -1, frames with the
// outermost first, for each view 0 or [bytes, error, one number per column]].
const data = JSON.parse(document.getElementById('data').textContent);
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

// All figures of a site or call are one array; a view's begin at view.at.
let stride = 0;
for (const view of data.views) {
  view.at = stride;
  stride += 2 + view.columns.length;
}
// The view that is shown.
let view = data.views[0];

function bytesText(bytes) {
  if (bytes === 1) return '1 byte';
  if (bytes < 1024) return Math.round(bytes) + ' bytes';
  let unit = 0;
  for (; bytes >= 1023.95 && unit + 1 < UNITS.length; ++unit) bytes /= 1024;
  return bytes.toFixed(1) + ' ' + UNITS[unit];
}

function exactText(number) { return Math.round(number).toLocaleString('en'); }

function cellText(column, number) { return column.bytes ? bytesText(number) : exactText(number); }

function shareText(part, whole) { return whole > 0 ? (100 * part / whole).toFixed(1) + '%' : '-'; }

// Of a variance: twice the standard error, within which nine in ten estimates are.
function errorText(variance, bytes) {
  return bytes > 0 ? '±' + Math.round(200 * Math.sqrt(variance) / bytes) + '%' : '';
}

function nameOf(frame) { return data.functions[data.frames[frame][0]][0]; }
function moduleOf(frame) { return data.functions[data.frames[frame][0]][1]; }
function placeOf(frame) { return data.frames[frame][1]; }

function textOf(frame) { return nameOf(frame) + (placeOf(frame) ? ' at ' + placeOf(frame) : ''); }

// Without parameters, template arguments and the type of what is returned.
function bareName(name) {
  if (/operator\W/.test(name)) return name;
  let bare = '';
  let depth = 0;
  for (const letter of name.replaceAll('(anonymous namespace)::', '')) {
    if ('<({['.includes(letter)) ++depth;
    if (depth === 0) bare += letter;
    if ('>)}]'.includes(letter)) --depth;
  }
  return bare.replace(/ (const|\[clone.*)$/, '').replace(/^.* /, '') || name;
}

// As much of a name as has room in so many letters: without arguments, then
// without its first scopes.
function fittingName(name, letters) {
  if (name.length <= letters) return name;
  let fitting = bareName(name);
  while (fitting.length > letters && fitting.includes('::')) fitting = fitting.slice(fitting.indexOf('::') + 2);
  return fitting;
}

function hashOf(text) {
  let hash = 2166136261;
  for (let at = 0; at < text.length; ++at) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619) >>> 0;
  return hash;
}

function addTo(sums, more) {
  for (let i = 0; i < stride; ++i) sums[i] += more[i];
}

const sites = data.sites.map(([group, frames, figures]) => {
  const sums = new Float64Array(stride);
  figures.forEach((of, i) => {
    if (!of) return;
    sums.set(of, data.views[i].at);
    sums[data.views[i].at + 1] = of[1] * of[1];
  });
  return {group, frames, sums};
});

const totals = new Float64Array(stride);
sites.forEach(site => addTo(totals, site.sums));
function total() { return totals[view.at]; }

// A site's calls as numbers: functions, processes behind them, and the one of
// sites without a stack last.
const GROUPS = data.functions.length;
const NO_STACK = GROUPS + data.groups.length;
const KEYS = NO_STACK + 1;
for (const site of sites) {
  site.keys = site.frames.map(frame => data.frames[frame][0]);
  if (site.group >= 0) site.keys.unshift(GROUPS + site.group);
  if (site.frames.length === 0) site.keys.push(NO_STACK);
}

function keyName(key) {
  return key < GROUPS ? data.functions[key][0] : key < NO_STACK ? data.groups[key - GROUPS] : '(no stack)';
}

// A call in a tree, or its root, or a process below the root. `frames` are the
// places that it has in the sites.
class Call {
  bytes = 0;
  children = [];  // those with most bytes first
  frames = [];
  start = 0;  // bytes of its earlier siblings, and of those of its callers

  constructor(parent, key, number) {
    this.parent = parent;
    this.key = key;
    this.number = number;
    this.depth = parent ? parent.depth + 1 : 0;
  }

  get name() { return this.parent ? keyName(this.key) : 'everything'; }
  // -1: it is no function.
  get module() { return this.parent && this.key < GROUPS ? data.functions[this.key][1] : -1; }
  // Among its siblings, and in other pages of the program.
  get id() { return hashOf(this.name).toString(36); }

  // From the root to this one.
  path() {
    const calls = [];
    for (let at = this; at; at = at.parent) calls.unshift(at);
    return calls;
  }

  ids() { return this.path().slice(1).map(call => call.id); }

  isBelow(other) {
    let at = this;
    while (at.depth > other.depth) at = at.parent;
    return at === other;
  }
}

// Of the sites that a filter leaves, for the view that is shown now.
class Tree {
  #calls = new Map();
  #filter;

  constructor(filter) {
    this.#filter = filter;
    this.root = new Call(null, -1, 0);
    this.places = [];  // {site, leaf}: those with most bytes first
    for (const site of sites) {
      const bytes = site.sums[view.at];
      if (bytes > 0 && filter(site)) this.places.push({site, leaf: this.#add(site, bytes)});
    }
    this.places.sort((a, b) => b.site.sums[view.at] - a.site.sums[view.at]);
    Tree.#layOut(this.root);
  }

  #add({group, frames, keys}, bytes) {
    let at = this.root;
    at.bytes += bytes;
    const before = group >= 0 ? 1 : 0;
    keys.forEach((key, i) => {
      const place = at.number * KEYS + key;
      let call = this.#calls.get(place);
      if (!call) {
        call = new Call(at, key, this.#calls.size + 1);
        this.#calls.set(place, call);
        at.children.push(call);
      }
      call.bytes += bytes;
      if (i >= before && i < before + frames.length && !call.frames.includes(frames[i - before])) {
        call.frames.push(frames[i - before]);
      }
      at = call;
    });
    return at;
  }

  static #layOut(call) {
    call.children.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
    let start = call.start;
    for (const child of call.children) {
      child.start = start;
      start += child.bytes;
      Tree.#layOut(child);
    }
  }

  // What is known of a call in all views: its figures, those of the sites that
  // end there, and its places, those with most bytes first.
  about(call) {
    const keys = call.path().slice(1).map(step => step.key);
    const [sums, itself, places] = [new Float64Array(stride), new Float64Array(stride), new Map()];
    for (const site of sites) {
      if (!keys.every((key, i) => site.keys[i] === key) || !this.#filter(site)) continue;
      addTo(sums, site.sums);
      if (site.keys.length === keys.length) addTo(itself, site.sums);
      const frame = site.frames[keys.length - 1 - (site.group >= 0 ? 1 : 0)];
      const place = frame === undefined ? '' : placeOf(frame);
      if (place) places.set(place, (places.get(place) || 0) + site.sums[view.at]);
    }
    return {sums, itself, places: [...places].sort((a, b) => b[1] - a[1]).map(([place]) => place)};
  }

  // The call that these ids lead to, as far as there is one with bytes.
  find(ids) {
    let at = this.root;
    for (const id of ids) {
      const next = at.children.find(child => child.id === id);
      if (!next) break;
      at = next;
    }
    return at;
  }

  like(call) { return this.find(call.ids()); }
}
