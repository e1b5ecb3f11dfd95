// The flame graph: the root above, what it calls below, the wider the more bytes.
//
// One element is in the order of tabs, the graph; which call is the current one
// is told by aria-activedescendant.
const SMALLEST_PIXELS = 1.5;
const SMALLEST_LABEL_PIXELS = 28;
const TINTS = 5;

function tintOf(name) {
  if (/\+0x[0-9a-f]+$|^0x[0-9a-f]+$/.test(name)) return 'unnamed';
  let hash = 7;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  return 'tint' + hash % TINTS;
}

class Graph {
  constructor(onZoom) {
    this.box = document.getElementById('graph');
    this.words = document.getElementById('current');
    this.whole = document.getElementById('whole');
    this.onZoom = onZoom;
    this.matches = null;
    this.box.addEventListener('click', event => this.#onClick(event));
    this.box.addEventListener('mousemove', event => this.#onMove(event));
    this.box.addEventListener('mouseleave', () => this.#tell(this.current));
    this.box.addEventListener('keydown', event => this.#onKey(event));
    this.whole.addEventListener('click', () => this.zoomTo(this.tree.root));
    new ResizeObserver(() => this.#onResize()).observe(this.box);
  }

  show(view, tree) {
    const zoom = this.zoom ? tree.like(this.zoom) : tree.root;
    this.view = view;
    this.tree = tree;
    this.zoomTo(zoom, this.current ? tree.like(this.current) : zoom);
  }

  // `matches` says whether a function is one that was looked for; or it is null.
  mark(matches) {
    this.matches = matches;
    this.#draw();
  }

  zoomTo(call, current = call) {
    this.zoom = call;
    this.current = current.isBelow(call) || call.isBelow(current) ? current : call;
    this.whole.disabled = !call.parent;
    this.#draw();
    this.onZoom();
  }

  #onResize() {
    if (this.tree && this.box.clientWidth !== this.drawnWidth) this.#draw();
  }

  #draw() {
    this.drawn = [];
    this.drawnWidth = this.box.clientWidth;
    const parts = document.createDocumentFragment();
    for (const call of this.zoom.path().slice(0, -1)) parts.append(this.#frame(call, 0, 1, 'above'));
    const bytes = this.zoom.all.bytes || 1;
    const visit = call => {
      const width = call === this.zoom ? 1 : call.all.bytes / bytes;
      if (width * this.drawnWidth < SMALLEST_PIXELS) return;
      parts.append(this.#frame(call, (call.start - this.zoom.start) / bytes, width, ''));
      call.children.forEach(visit);
    };
    visit(this.zoom);
    this.box.replaceChildren(parts);
    this.box.style.setProperty('--rows', 1 + Math.max(...this.drawn.map(call => call.depth)));
    this.#point();
  }

  #frame(call, left, width, more) {
    const frame = document.createElement('div');
    const found = this.matches && call.isFunction ? this.matches(call.name) ? 'found' : 'other' : '';
    const tint = call.isFunction ? tintOf(call.name) : 'unnamed';
    frame.className = ['frame', tint, more, found].join(' ');
    frame.id = 'call-' + this.drawn.length;
    frame.setAttribute('role', 'treeitem');
    frame.setAttribute('aria-level', call.depth + 1);
    frame.setAttribute('aria-selected', 'false');
    frame.setAttribute('aria-label', this.#text(call));
    frame.style.left = 100 * left + '%';
    frame.style.width = 100 * width + '%';
    frame.style.setProperty('--row', call.depth);
    if (width * this.drawnWidth >= SMALLEST_LABEL_PIXELS) frame.textContent = call.name;
    this.drawn.push(call);
    return frame;
  }

  #text(call) {
    const view = data.views[this.view];
    const {all, itself} = call;
    const parts = [view.sign + bytesText(all.bytes), percentText(all.bytes, this.tree.root.all.bytes)];
    if (all.variance > 0) parts.push(errorText(all.error, all.bytes));
    view.columns.forEach((column, i) => parts.push(column.title + ' ' + cellText(column, all.columns[i] || 0)));
    if (call.isFunction && itself.bytes > 0) parts.push('itself ' + bytesText(itself.bytes));
    return call.name + ': ' + parts.join(', ');
  }

  #tell(call) {
    const [name, figures] = [document.createElement('strong'), document.createElement('span')];
    name.textContent = call.name;
    figures.textContent = this.#text(call).slice(call.name.length + 2);
    this.words.replaceChildren(name, figures);
  }

  #elementOf(call) { return this.box.children[this.drawn.indexOf(call)]; }

  // Shows which call is the current one; it may be too small to be drawn.
  #point() {
    this.box.querySelector('.current')?.setAttribute('aria-selected', 'false');
    this.box.querySelector('.current')?.classList.remove('current');
    while (!this.drawn.includes(this.current)) this.current = this.current.parent;
    const element = this.#elementOf(this.current);
    element.classList.add('current');
    element.setAttribute('aria-selected', 'true');
    this.box.setAttribute('aria-activedescendant', element.id);
    this.#tell(this.current);
  }

  #callAt(event) {
    const frame = event.target.closest('.frame');
    return frame && this.drawn[Number(frame.id.slice('call-'.length))];
  }

  #onClick(event) {
    const call = this.#callAt(event);
    if (call) this.zoomTo(call);
  }

  #onMove(event) { this.#tell(this.#callAt(event) || this.current); }

  #onKey(event) {
    const drawnChild = this.current.children.find(child => this.drawn.includes(child));
    const level = this.drawn.filter(call => call.depth === this.current.depth);
    const beside = step => level[level.indexOf(this.current) + step];
    const goTo = {
      ArrowUp: this.current.parent,
      ArrowDown: drawnChild,
      ArrowLeft: beside(-1),
      ArrowRight: beside(1),
      Home: this.zoom,
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in goTo) {
      this.current = goTo[event.key] || this.current;
      this.#point();
      this.#elementOf(this.current).scrollIntoView({block: 'nearest'});
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.zoomTo(this.current);
    } else if (event.key === 'Escape') {
      this.zoomTo(this.tree.root, this.current);
    } else {
      return;
    }
    event.preventDefault();
  }
}
