#!/bin/bash
# prom-client 15.1.3 (npm) under Node.js 20: process_heap_bytes counts the threads.
#
# A good guess: the metric, "Process heap size in bytes" in its own help, grows and
# shrinks with malloc or with V8's heap. Seen: it is VmData of /proc/self/status: each
# private mapping that may be written, touched or not. A thread's stack of 8 MiB is
# the most of that. So a setting of how many threads read files adds 1 GiB to the
# "heap", with 3 MiB more in memory, and an alert on heap growth tells of a thread.
#
# Seen: MiB of process_heap_bytes and of nodejs_heap_size_total_bytes at the start 55
# and 9; after the pool's threads have started, 4 of them 88 and 9, 128 of them
# (UV_THREADPOOL_SIZE) 1,080 and 9.
#
# Needs node, npm, a limit of stacks (ulimit -s) of 8 MiB. Exit status 1: it is not so
# any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset UV_THREADPOOL_SIZE NODE_OPTIONS
ulimit -S -s 8192
npm install --silent --no-audit --no-fund --ignore-scripts prom-client@15.1.3 \
  >/dev/null
cat >heap.js <<'JS'
const client = require('prom-client');
const fs = require('fs');

client.collectDefaultMetrics();

async function mib(name) {
  const metric = await client.register.getSingleMetric(name).get();
  return Math.round(metric.values[0].value / 1048576);
}

async function show() {
  // The metric of the resident memory fills that of the heap.
  const resident = await mib('process_resident_memory_bytes');
  return [await mib('process_heap_bytes'),
          await mib('nodejs_heap_size_total_bytes'), resident];
}

(async () => {
  const before = await show();
  await Promise.all(Array.from({length: 200}, () => fs.promises.stat('/')));
  console.log(...before, ...await show());
})();
JS
read -r start start_v8 _ few few_v8 _ < <(node heap.js)
read -r _ _ resident many many_v8 many_resident < <(UV_THREADPOOL_SIZE=128 node heap.js)
echo "MiB of process_heap_bytes (V8's heap): start $start ($start_v8), 4 threads" \
  "$few ($few_v8), 128 threads $many ($many_v8);" \
  "in memory $((many_resident - resident)) more"
((few - start >= 30 && many - few >= 900 && many_v8 < 40 &&
  many_resident - resident < 40)) || { echo "not what was seen"; exit 1; }
