// What the reader looks for, and what sites are left by focus and ignore.

// A pattern is text, or a regular expression; case says nothing. A name like
// "Add(Key)" is found as text, though it is an expression as well.
class Pattern {
  constructor(wanted) {
    this.lower = wanted.toLowerCase();
    try {
      this.expression = new RegExp(wanted, 'i');
      this.whole = new RegExp('^(?:' + wanted + ')$', 'i');
    } catch {}
  }

  isIn(text) { return text.toLowerCase().includes(this.lower) || this.expression?.test(text); }
  is(text) { return text.toLowerCase() === this.lower || this.whole?.test(text); }
}

// The pattern of exactly this name.
function exactly(name) { return '^' + name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') + '$'; }

// Which frames and processes match, each asked once: by the function's name, its
// place or its library. The program is a module, too, but is meant by its whole
// name alone: else "serve" would be everywhere in a server.
class Matches {
  constructor(pattern) {
    const modules = data.modules.map(module => module.includes('.so') ? pattern.isIn(module) : pattern.is(module));
    const functions = data.functions.map(([name, module]) => modules[module] || pattern.isIn(name));
    this.frames = data.frames.map(([index, place]) => functions[index] || place !== '' && pattern.isIn(place));
    this.groups = data.groups.map(group => pattern.isIn(group));
  }

  // Null: nothing is looked for.
  static of(words) { return words.trim() ? new Matches(new Pattern(words.trim())) : null; }

  site({group, frames}) { return group >= 0 && this.groups[group] || frames.some(frame => this.frames[frame]); }

  call({key, frames}) {
    if (key >= GROUPS) return key < NO_STACK && this.groups[key - GROUPS];
    return frames.some(frame => this.frames[frame]);
  }

  // The bytes of all calls that match, with what they call, each once.
  bytesBelow(call) {
    if (this.call(call)) return call.bytes;
    return call.children.reduce((sum, child) => sum + this.bytesBelow(child), 0);
  }
}

// Whether a site is left: with a call that `focus` matches, and none that `ignore` does.
function filterOf(focus, ignore) {
  const [wanted, unwanted] = [Matches.of(focus), Matches.of(ignore)];
  return site => (!wanted || wanted.site(site)) && !(unwanted && unwanted.site(site));
}

// Each module has the colour that the hash of its name says, or the next free
// one; names come in alphabetical order, so it is the same at each look.
const COLOURS = 24;
const colourOf = (() => {
  const colours = [];
  const taken = new Set();
  const names = data.modules.map((name, i) => [name, i]).sort((a, b) => a[0] < b[0] ? -1 : 1);
  for (const [name, i] of names) {
    let colour = hashOf(name) % COLOURS;
    while (taken.size < COLOURS && taken.has(colour)) colour = (colour + 1) % COLOURS;
    taken.add(colour);
    colours[i] = 'c' + colour;
  }
  return module => module < 0 ? 'grey' : colours[module];
})();
