// What is known of a call: its name, module and places, and its exact numbers
// in every view. The card of the current call stands below the graph, another
// one follows the mouse.
const PLACES_SHOWN = 3;

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function button(properties, onClick, ...children) {
  const made = element('button', {type: 'button', ...properties}, ...children);
  made.addEventListener('click', onClick);
  return made;
}

function swatch(module) { return element('i', {className: 'swatch ' + colourOf(module), ariaHidden: 'true'}); }

// In words, of one view; each a part that is not broken. The view that is shown
// tells its exact bytes.
function figuresOf(of, sums, itself) {
  const bytes = sums[of.at];
  const error = totals[of.at + 1] > 0 ? errorText(sums[of.at + 1], bytes) : '';
  const parts = [of.sign + bytesText(bytes), error, shareText(bytes, totals[of.at])];
  of.columns.forEach((column, i) => parts.push(cellText(column, sums[of.at + 2 + i]) + ' ' + column.title));
  if (of === view && bytes >= 1024) parts.push(of.sign + exactText(bytes) + ' bytes');
  if (itself && itself[of.at] > 0 && itself[of.at] < bytes) parts.push('itself ' + bytesText(itself[of.at]));
  return parts.filter(text => text).map(text => element('span', {}, text));
}

// Of all views with bytes.
function figuresList(sums, itself) {
  const list = element('dl', {});
  for (const of of data.views) {
    if (sums[of.at] === 0) continue;
    const className = of === view ? 'shown' : '';
    list.append(element('dt', {className}, of.name), element('dd', {className}, ...figuresOf(of, sums, itself)));
  }
  return list;
}

function cardOf(call, tree) {
  const {sums, itself, places} = tree.about(call);
  const where = places.slice(0, PLACES_SHOWN);
  if (places.length > PLACES_SHOWN) where.push(places.length - PLACES_SHOWN + ' more places');
  const card = [element('strong', {}, call.name)];
  if (call.module >= 0) {
    card.push(element('span', {className: 'where'}, swatch(call.module), [data.modules[call.module], ...where].join(' · ')));
  }
  return [...card, figuresList(sums, call.module < 0 ? null : itself)];
}

// Beside the mouse, and inside of the window.
class Tip {
  constructor() { this.box = document.getElementById('tip'); }

  show(call, tree, event) {
    if (call !== this.call) this.box.replaceChildren(...cardOf(call, tree));
    this.call = call;
    this.box.hidden = false;
    const {offsetWidth: width, offsetHeight: height} = this.box;
    const {clientWidth, clientHeight} = document.documentElement;
    const below = event.clientY + 18;
    this.box.style.left = Math.max(0, Math.min(event.clientX + 12, clientWidth - width - 4)) + 'px';
    this.box.style.top = (below + height < clientHeight ? below : Math.max(0, event.clientY - height - 10)) + 'px';
  }

  hide() { this.box.hidden = true; }
}
