// The flame graph: the root above, what it calls below, the wider the more bytes.
//
// One element is in the order of tabs, the graph; which call is the current one
// is told by aria-activedescendant.
const SMALLEST_PIXELS = 1.5;
const SMALLEST_LABEL_PIXELS = 28;
const LETTER_PIXELS = 6.6;

class Graph {
  constructor(onZoom, onCurrent, onDraw) {
    this.box = document.getElementById('graph');
    this.onZoom = onZoom;
    this.onCurrent = onCurrent;
    this.onDraw = onDraw;
    this.tip = new Tip();
    this.box.addEventListener('click', event => this.#onClick(event));
    this.box.addEventListener('mousemove', event => this.#onMove(event));
    this.box.addEventListener('mouseleave', () => this.tip.hide());
    this.box.addEventListener('keydown', event => this.#onKey(event));
    new ResizeObserver(() => this.#onResize()).observe(this.box);
  }

  // `matches` says which calls were looked for; or it is null.
  show(tree, zoom, matches) {
    this.tree = tree;
    this.matches = matches;
    this.zoom = zoom;
    const current = this.current ? tree.like(this.current) : zoom;
    this.current = current.isBelow(zoom) || zoom.isBelow(current) ? current : zoom;
    this.#draw();
  }

  // The current call; or its nearest caller that is wide enough to be seen.
  point(call) {
    this.current = call;
    this.#point();
  }

  #onResize() {
    if (this.tree && this.box.clientWidth !== this.drawnWidth) this.#draw();
  }

  #draw() {
    this.tip.hide();
    this.drawn = [];
    this.indexOf = new Map();
    this.drawnWidth = this.box.clientWidth;
    const parts = document.createDocumentFragment();
    for (const call of this.zoom.path().slice(0, -1)) parts.append(this.#frame(call, 0, 1, 'above'));
    const bytes = this.zoom.bytes || 1;
    const visit = call => {
      const width = call === this.zoom ? 1 : call.bytes / bytes;
      if (width * this.drawnWidth < SMALLEST_PIXELS) return;
      parts.append(this.#frame(call, (call.start - this.zoom.start) / bytes, width, ''));
      call.children.forEach(visit);
    };
    visit(this.zoom);
    this.box.replaceChildren(parts);
    this.box.style.setProperty('--rows', 1 + Math.max(...this.drawn.map(call => call.depth)));
    this.#point();
    this.onDraw();
  }

  #frame(call, left, width, more) {
    const frame = document.createElement('div');
    const found = this.matches ? this.matches.call(call) ? 'found' : 'other' : '';
    frame.className = ['frame', colourOf(call.module), more, found].join(' ');
    frame.id = 'call-' + this.drawn.length;
    frame.setAttribute('role', 'treeitem');
    frame.setAttribute('aria-level', call.depth + 1);
    frame.setAttribute('aria-selected', 'false');
    frame.setAttribute('aria-label', call.name + ': ' + view.sign + bytesText(call.bytes) + ', ' +
      shareText(call.bytes, total()));
    frame.style.left = 100 * left + '%';
    frame.style.width = 100 * width + '%';
    frame.style.setProperty('--row', call.depth);
    const pixels = width * this.drawnWidth;
    if (pixels >= SMALLEST_LABEL_PIXELS) frame.textContent = fittingName(call.name, pixels / LETTER_PIXELS);
    this.indexOf.set(call, this.drawn.length);
    this.drawn.push(call);
    return frame;
  }

  #elementOf(call) { return this.box.children[this.indexOf.get(call)]; }

  #point() {
    this.box.querySelector('.current')?.setAttribute('aria-selected', 'false');
    this.box.querySelector('.current')?.classList.remove('current');
    while (!this.indexOf.has(this.current)) this.current = this.current.parent;
    const element = this.#elementOf(this.current);
    element.classList.add('current');
    element.setAttribute('aria-selected', 'true');
    this.box.setAttribute('aria-activedescendant', element.id);
    this.onCurrent(this.current);
  }

  #callAt(event) {
    const frame = event.target.closest('.frame');
    return frame && this.drawn[Number(frame.id.slice('call-'.length))];
  }

  #onClick(event) {
    const call = this.#callAt(event);
    if (!call) return;
    this.current = call;
    this.onZoom(call);
  }

  #onMove(event) {
    const call = this.#callAt(event);
    call ? this.tip.show(call, this.tree, event) : this.tip.hide();
  }

  #onKey(event) {
    const level = this.drawn.filter(call => call.depth === this.current.depth);
    const beside = step => level[level.indexOf(this.current) + step];
    const goTo = {
      ArrowUp: this.current.parent,
      ArrowDown: this.current.children.find(child => this.indexOf.has(child)),
      ArrowLeft: beside(-1),
      ArrowRight: beside(1),
      Home: this.zoom,
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in goTo) {
      this.point(goTo[event.key] || this.current);
      this.#elementOf(this.current).scrollIntoView({block: 'nearest'});
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.onZoom(this.current);
    } else if (event.key === 'Escape') {
      this.onZoom(this.tree.root);
    } else {
      return;
    }
    event.preventDefault();
  }
}
