#!/bin/bash
# CPython 3.11 (glibc 2.36, x86-64): each multiprocessing.Value is a mapping of its own,
# so a process may have some 65,000 of them.
#
# A good guess: Value('i') takes four bytes of memory that the processes share, and its
# lock some dozen bytes there, so a hundred thousand counters are a few MiB. Seen: the
# number lies with others in a common file, as said. The lock, which a Value has unless
# told otherwise, is a named semaphore of POSIX, and glibc makes a file in /dev/shm for
# each, takes its name away and keeps it mapped. That is a page each, and one of the
# 65,530 mappings that the kernel allows by default. A Queue has three such locks and an
# Event five. lock=False or one Array for all has none.
#
# Seen: mappings more with 10,000 values without locks 5, with locks 10,001; with 100
# Queues 300, 100 Events 500. KiB of RssShmem more after each of the 10,000 locks was
# taken once 40,000.
#
# Needs python3 (3.11), 64 MiB of /dev/shm. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >values.py <<'PYTHON'
import multiprocessing


def mappings():
    with open("/proc/self/maps") as maps:
        return sum("/dev/shm/" in line or "pym-" in line for line in maps)


def shared_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status
                    if line.startswith("RssShmem:"))


def added(make, count):
    before = mappings()
    made.append([make() for _ in range(count)])
    return mappings() - before


made = []
print(added(lambda: multiprocessing.Value("i", 0, lock=False), 10000),
      added(lambda: multiprocessing.Value("i", 0), 10000),
      added(multiprocessing.Queue, 100), added(multiprocessing.Event, 100), end=" ")
before = shared_kib()
for value in made[1]:
    with value.get_lock():
        value.value += 1
print(shared_kib() - before)
PYTHON
read -r raw locked queues events shared < <(env -u LD_PRELOAD python3 values.py)
echo "mappings: 10,000 values without locks $raw, with locks $locked, 100 queues" \
  "$queues, 100 events $events; KiB after each lock was taken $shared"
((raw < 100 && locked >= 10000 && locked < 10100 && queues >= 300)) &&
  ((events >= 500 && shared > 39000)) || { echo "not what was seen"; exit 1; }
