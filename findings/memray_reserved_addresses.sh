#!/bin/bash
# memray 1.15.0 (PyPI) beside pyarrow 19.0.0 (PyPI): what memray counts for one
# buffer of 1 MiB depends on how the pool below it asks for addresses.
#
# A good guess: memray follows malloc and mmap, so the buffer costs 1 MiB at the
# high-water mark whichever of pyarrow's three pools it comes from, or a little
# more. Seen: mmap counts at its full length, read or not. Out of the mimalloc
# pool the buffer is 64 MiB (its reservation, of which 84 KiB are in memory), out
# of the system's pool 1 MiB, and out of the jemalloc pool nothing, for that one
# mapped its addresses when pyarrow was loaded.
#
# Seen: MiB at the high-water mark: mimalloc 64, system 1, jemalloc 0; the pools
# themselves say 1 MiB each.
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install memray==1.15.0 \
  pyarrow==19.0.0 rich==15.0.0 textual==8.2.8 Jinja2==3.1.6
cat >buffer.py <<'PYTHON'
import sys

import memray
import pyarrow

pool = getattr(pyarrow, sys.argv[1] + "_memory_pool")()
with memray.Tracker(sys.argv[1] + ".bin"):
    buffer = pyarrow.allocate_buffer(1 << 20, memory_pool=pool)
assert pool.bytes_allocated() == 1 << 20
reader = memray.FileReader(sys.argv[1] + ".bin")
records = reader.get_high_watermark_allocation_records(merge_threads=True)
print(sum(record.size for record in records) >> 20)
PYTHON
seen=
for pool in mimalloc system jemalloc; do
  seen+="$pool $(venv/bin/python buffer.py "$pool") "
done
echo "MiB for a buffer of 1 MiB: $seen"
[[ $seen == "mimalloc 64 system 1 jemalloc 0 " ]] ||
  { echo "not what was seen"; exit 1; }
