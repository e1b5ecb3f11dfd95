#!/bin/bash
# memray 1.15.0 (also 1.20.0) and filprofiler 2024.11.2 (PyPI): to both, a mapping
# keeps for ever the length that it began with.
#
# A good guess: profilers that follow mmap and munmap follow mremap, too, which is
# how Python's mmap.resize (and what else grows a mapping in place) changes one. Seen:
# neither watches mremap. What is grown stays invisible at any size, and what is
# shrunk stays in the report in full, as live memory, though the kernel has it back.
#
# Seen: a mapping of 4 KiB grown to 256 MiB and written: memray 0 MiB, fil 0 MiB,
# in memory 256. One of 256 MiB written and shrunk to 4 KiB: memray tells of 256 MiB
# live, in memory 0.
#
# Needs python3 (3.9 to 3.12) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install memray==1.15.0 \
  filprofiler==2024.11.2 rich==15.0.0 textual==8.2.8 Jinja2==3.1.6
cat >resized.py <<'PYTHON'
import mmap
import sys

begin, end = (int(length) << 10 for length in sys.argv[1:3])


def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1])


def resized():
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    mapping = mmap.mmap(-1, begin, flags=flags)
    for offset in range(0, begin, mmap.PAGESIZE):
        mapping[offset] = 1
    mapping.resize(end)
    for offset in range(0, end, mmap.PAGESIZE):
        mapping[offset] = 1
    return mapping


if len(sys.argv) == 3:
    kept = resized()
else:
    import memray

    before = anonymous()
    with memray.Tracker(sys.argv[3]):
        kept = resized()
        in_memory = anonymous() - before
    reader = memray.FileReader(sys.argv[3])
    records = reader.get_leaked_allocation_records(merge_threads=True)
    print(sum(record.size for record in records) >> 20, (in_memory + 512) >> 10)
PYTHON
read -r grown grown_real < <(venv/bin/python resized.py 4 262144 grown.bin)
read -r shrunk shrunk_real < <(venv/bin/python resized.py 262144 4 shrunk.bin)
venv/bin/fil-profile --no-browser -o fil run resized.py 4 262144 >/dev/null 2>&1
fil=$(cat fil/*/peak-memory.prof | awk '{sum += $NF} END {print int(sum / 1048576)}')
echo "MiB: grown to 256: memray $grown, fil $fil, in memory $grown_real;" \
  "shrunk to 0: memray $shrunk, in memory $shrunk_real"
((grown == 0 && fil == 0 && grown_real > 250 && shrunk >= 256 && shrunk_real < 6)) ||
  { echo "not what was seen"; exit 1; }
