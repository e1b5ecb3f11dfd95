#!/bin/bash
# CPython 3.11 (also 3.13), Linux 6.18: memory of mmap.mmap(-1, length) costs when it
# is read, and does not go when it is given back.
#
# A good guess: a mapping of no file is what malloc and every runtime use: reading it
# costs nothing, and MADV_DONTNEED gives its pages back and leaves zeros. Seen: the
# default of Python's call is MAP_SHARED, so the memory is a file of tmpfs. A read of
# an untouched page allocates it. After madvise(MADV_DONTNEED) the bytes are still
# there and the memory is still taken, but the process's RSS has fallen by all of it:
# tools that look at RSS tell of a success. Only MADV_REMOVE gives it back. With
# flags=MAP_PRIVATE|MAP_ANONYMOUS all is as guessed.
#
# Seen: of 256 MiB, MiB of RSS after a read of each page, after a write of each and
# MADV_DONTNEED, and the first byte then (1 was written): by default 256, 0, 1;
# private 0, 0, 0. After MADV_REMOVE the byte is 0 by default, too.
#
# Needs python3 (3.8 and above), 300 MiB of memory. Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pages.py <<'PYTHON'
import mmap
import sys

length = 256 << 20
pages = range(0, length, mmap.PAGESIZE)


def rss():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])


flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
private = sys.argv[1] == "private"
memory = mmap.mmap(-1, length, flags=flags) if private else mmap.mmap(-1, length)
start = rss()
sum(memory[page] for page in pages)
read = rss() - start
for page in pages:
    memory[page] = 1
memory.madvise(mmap.MADV_DONTNEED)
gone = rss() - start
first = memory[0]
memory.madvise(mmap.MADV_DONTNEED if private else mmap.MADV_REMOVE)
print((read + 512) >> 10, (gone + 512) >> 10, first, memory[0])
PYTHON
read -r read gone first removed < <(python3 pages.py default)
read -r plain_read plain_gone plain_first _ < <(python3 pages.py private)
echo "MiB read, given back, first byte: by default $read, $gone, $first" \
  "($removed after MADV_REMOVE); private $plain_read, $plain_gone, $plain_first"
((read > 250 && gone < 6 && first == 1 && removed == 0 && plain_read < 6 &&
  plain_gone < 6 && plain_first == 0)) || { echo "not what was seen"; exit 1; }
