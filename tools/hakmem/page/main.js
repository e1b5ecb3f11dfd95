// What the reader chooses: a view, and what to look for.
const trees = new Map();
const search = document.getElementById('search');
const found = document.getElementById('found');
const choices = document.querySelectorAll('input[name=view]');

function matcher() {
  const wanted = search.value.trim().toLowerCase();
  return wanted ? name => name.toLowerCase().includes(wanted) : null;
}

// The bytes of all calls that match, with what they call, each once.
function bytesFound(call, matches) {
  if (call.isFunction && matches(call.name)) return call.all.bytes;
  return call.children.reduce((sum, child) => sum + bytesFound(child, matches), 0);
}

const graph = new Graph(refresh);
const tables = new Tables(graph, name => {
  search.value = name;
  look();
});

function refresh() {
  const matches = matcher();
  if (matches) {
    const bytes = bytesFound(graph.zoom, matches);
    found.textContent = bytes === 0 ? 'nothing found' :
      bytesText(bytes) + ', ' + percentText(bytes, graph.zoom.all.bytes) + ' of what is shown';
  } else {
    found.textContent = '';
  }
  tables.fill(matches);
}

function look() {
  graph.mark(matcher());
  refresh();
}

function show(view) {
  if (!trees.has(view)) trees.set(view, new Tree(view));
  document.getElementById('about').textContent = data.views[view].about;
  graph.box.classList.toggle('cool', data.views[view].cool);
  graph.show(view, trees.get(view));
}

choices.forEach(choice => choice.addEventListener('change', () => show(Number(choice.value))));
search.addEventListener('input', look);
search.addEventListener('keydown', event => {
  if (event.key !== 'Escape') return;
  search.value = '';
  look();
});
document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.target === search) return;
  event.preventDefault();
  search.focus();
});
document.documentElement.classList.add('ready');
show(Number(document.querySelector('input[name=view]:checked').value));
