// What the reader chooses is in the address after its #, so that a link shows
// the same again: the view, the patterns, the table, and the call shown alone.
const MODULES_SHOWN = 12;
const WORDS = ['search', 'focus', 'ignore'];
const input = Object.fromEntries(WORDS.map(key => [key, document.getElementById(key)]));
const found = document.getElementById('found');
const legend = document.getElementById('legend');
const card = document.getElementById('current');
const radios = name => [...document.querySelectorAll('input[name=' + name + ']')];
const first = {view: radios('view').findIndex(radio => radio.checked), table: 'places', search: '', focus: '', ignore: '', at: ''};
let state = {};
let tree = null;
let matches = null;

function stateOf(fragment) {
  const words = new URLSearchParams(fragment);
  const asked = {...first};
  for (const key in first) {
    if (words.has(key)) asked[key] = words.get(key);
  }
  asked.view = data.views.findIndex((of, i) => of.name === asked.view || i === asked.view);
  if (asked.view < 0) asked.view = first.view;
  if (!radios('table').some(radio => radio.value === asked.table)) asked.table = first.table;
  return asked;
}

function fragmentOf(chosen) {
  const words = new URLSearchParams();
  for (const key in first) {
    if (chosen[key] !== first[key]) words.set(key, key === 'view' ? data.views[chosen.view].name : chosen[key]);
  }
  return words.size ? '#' + words : location.pathname + location.search;
}

function atOf(call) { return call.ids().join('.'); }

// Changes what is shown. A choice is one that the browser's Back takes back,
// typing is not.
function change(changes, isChoice = true) {
  const before = fragmentOf(state);
  show({...state, ...changes});
  const now = fragmentOf(state);
  if (now !== before) history[isChoice ? 'pushState' : 'replaceState'](null, '', now);
}

function show(asked) {
  const old = state;
  state = asked;
  view = data.views[state.view];
  if (!tree || ['view', 'focus', 'ignore'].some(key => old[key] !== state[key])) {
    tree = new Tree(filterOf(state.focus, state.ignore));
  }
  matches = Matches.of(state.search);
  const zoom = tree.find(state.at.split('.'));
  state.at = atOf(zoom);
  radios('view')[state.view].checked = true;
  radios('table').find(radio => radio.value === state.table).checked = true;
  for (const key of WORDS) {
    if (input[key].value.trim() !== state[key].trim()) input[key].value = state[key];
  }
  document.getElementById('about').textContent = view.about;
  document.documentElement.dataset.colours = view.sign === '+' ? 'growth' : view.sign === '-' ? 'shrinkage' : '';
  document.getElementById('reset').disabled = !['at', ...WORDS].some(key => state[key]);
  graph.show(tree, zoom, matches);
  tables.fill(state.table, tree, zoom, matches);
  tell(zoom);
}

// What was found and what a filter leaves, each as bytes and share of the total.
function tell(zoom) {
  const share = bytes => view.sign + bytesText(bytes) + ', ' + shareText(bytes, total());
  const parts = [];
  if (state.focus.trim() || state.ignore.trim()) parts.push('kept: ' + share(tree.root.bytes));
  if (matches) {
    const bytes = matches.bytesBelow(zoom);
    parts.push(bytes ? 'found: ' + share(bytes) : 'nothing found');
  }
  found.textContent = parts.join(' · ');
}

// The modules with the largest part of the graph, as many as fit.
function drawLegend() {
  const areas = new Map();
  for (const call of graph.drawn) {
    if (call.module >= 0) areas.set(call.module, (areas.get(call.module) || 0) + call.bytes);
  }
  const modules = [...areas.keys()].sort((a, b) => areas.get(b) - areas.get(a));
  const entry = module => {
    const wanted = exactly(data.modules[module]);
    const isFound = state.search === wanted;
    return button({title: 'Find ' + data.modules[module], ariaPressed: String(isFound)},
      () => change({search: isFound ? '' : wanted}), swatch(module), data.modules[module]);
  };
  for (let shown = Math.min(modules.length, MODULES_SHOWN); ; --shown) {
    legend.replaceChildren(...modules.slice(0, shown).map(entry));
    if (shown < modules.length) {
      legend.append(button({className: 'link'}, () => change({table: 'modules'}), '+' + (modules.length - shown)));
    }
    if (shown <= 1 || legend.scrollWidth <= legend.clientWidth) return;
  }
}

function drawCard(call) {
  const actions = element('span', {className: 'actions'});
  if (call.module >= 0) {
    for (const key of ['focus', 'ignore']) {
      actions.append(button({}, () => change({[key]: exactly(call.name), at: ''}), key));
    }
  }
  card.replaceChildren(actions, ...cardOf(call, tree));
}

const graph = new Graph(call => change({at: atOf(call)}), drawCard, drawLegend);
const tables = new Tables({
  point: call => graph.point(call),
  lookFor: search => change({search}),
  choose: view => change({view}),
});
radios('view').forEach(radio => radio.addEventListener('change', () => change({view: Number(radio.value)})));
radios('table').forEach(radio => radio.addEventListener('change', () => change({table: radio.value})));
for (const key of WORDS) {
  input[key].addEventListener('input', () => change({[key]: input[key].value}, false));
  input[key].addEventListener('keydown', event => {
    if (event.key === 'Escape') change({[key]: ''}, false);
  });
}
document.getElementById('reset').addEventListener('click', () => change({search: '', focus: '', ignore: '', at: ''}));
document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.target.matches('input[type=search]')) return;
  event.preventDefault();
  input.search.focus();
});
window.addEventListener('popstate', () => show(stateOf(location.hash.slice(1))));
document.documentElement.classList.add('ready');
show(stateOf(location.hash.slice(1)));
