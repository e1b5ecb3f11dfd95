#!/bin/bash
# Bun 1.4.4 (npm @oven/bun-linux-x64-baseline): process.memoryUsage() has 100 MiB of
# heap used, of a heap of 0 MiB in total.
#
# A good guess: the fields are those of Node.js, so heapUsed is at most heapTotal, and
# buffers are in external alone. Monitors show the quotient as a percentage, and
# subtract one from the other. Seen: heapUsed has the buffers' memory, too, and
# heapTotal has not. So the heap is used to 18,000 percent, free memory is negative, and
# who adds heapUsed and external counts each buffer twice.
#
# Seen: MiB of heapUsed, heapTotal and external with 100 buffers of 1 MiB: 100 0 100.
#
# Needs npm (for the package's files, 100 MB). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts \
  @oven/bun-linux-x64-baseline@1.4.4 >/dev/null
cat >heap.js <<'JS'
const buffers = [];
for (let i = 0; i < 100; ++i) buffers.push(new Uint8Array(1 << 20).fill(1));
Bun.gc(true);
const usage = process.memoryUsage();
console.log(usage.heapUsed >> 20, usage.heapTotal >> 20, usage.external >> 20,
            buffers.length);
JS
read -r used total external buffers \
  < <(node_modules/@oven/bun-linux-x64-baseline/bin/bun heap.js)
echo "MiB with $buffers buffers of 1 MiB: heapUsed $used, heapTotal $total, external" \
  "$external"
((buffers == 100 && used > 90 && total < 20 && external > 90)) ||
  { echo "not what was seen"; exit 1; }
