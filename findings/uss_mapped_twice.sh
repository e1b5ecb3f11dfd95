#!/bin/bash
# psutil 7.2.2 (PyPI) and Linux 6.18 (x86-64): a process's own memory that it maps twice
# is shared with nobody, and is no part of its unique memory.
#
# A good guess: USS is what would be freed if the process were ended now, as psutil
# says of it, so memory that no other process can have is in it; shared means by two
# processes. Seen: the kernel tells private from shared by the number of mappings of a
# page, and counts those of one process twice. A ring buffer with its second half
# behind it, or code that is written by one address and run by another, is all "shared".
# RSS has it twice, USS not at all, and PSS alone is right.
#
# Seen: MiB of RSS, USS, PSS of a memfd of 256 MiB, mapped once 256 256 256, mapped
# twice 512 0 256.
#
# Needs python3 with venv, 256 MiB of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install psutil==7.2.2
cat >twice.py <<'PYTHON'
import mmap
import os

import psutil

BYTES = 256 << 20
process = psutil.Process()


def mib():
    memory = process.memory_full_info()
    return [memory.rss >> 20, memory.uss >> 20, memory.pss >> 20]


def added():
    return [str(round((now - then) / 16) * 16) for now, then in zip(mib(), before)]


before = mib()
file = os.memfd_create("ring")
os.ftruncate(file, BYTES)
first = mmap.mmap(file, BYTES)
for offset in range(0, BYTES, mmap.PAGESIZE):
    first[offset] = 1
once = added()
second = mmap.mmap(file, BYTES)
read = sum(second[offset] for offset in range(0, BYTES, mmap.PAGESIZE))
print(*once, *added())
PYTHON
seen=$(venv/bin/python twice.py)
echo "MiB of RSS, USS, PSS, mapped once, then twice: $seen"
[[ $seen == "256 256 256 512 0 256" ]] || { echo "not what was seen"; exit 1; }
