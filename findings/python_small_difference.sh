#!/bin/bash
# CPython 3.11 (x86-64): the number 1000 takes a megabyte, if it is the difference of
# two large numbers.
#
# A good guess: an int takes as many digits as its value has, and sys.getsizeof tells
# it. Seen: the block of a result is for the longer operand, and only the count of
# digits is put right at the end. The block stays as large as it was, as long as the
# small number lives. sys.getsizeof goes by the count, so it has 28 bytes. Exclusive or
# and the remainder of two large numbers do the same. "&" with a small number takes what
# it needs, and so does "+ 0", which makes a new number.
#
# Seen: KiB by tracemalloc for each of 20 numbers below 2,000, made of numbers of eight
# million bits: differences 1041, exclusive or 1041, remainders 1041, by "&" 0,
# differences + 0 0; the bytes by sys.getsizeof 28 each.
#
# Needs python3 (3.11). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >difference.py <<'PYTHON'
import sys
import tracemalloc

COUNT = 20
LARGE = 1 << 8_000_000
OTHERS = [LARGE - 1000 - number for number in range(COUNT)]
ABOVE = [LARGE + 1000 + number for number in range(COUNT)]


def kib(make):
    tracemalloc.start()
    numbers = [make(number) for number in range(COUNT)]
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert numbers == list(range(1000, 1000 + COUNT))
    assert all(sys.getsizeof(number) == 28 for number in numbers)
    return used // COUNT // 1024


print(kib(lambda number: LARGE - OTHERS[number]),
      kib(lambda number: LARGE ^ ABOVE[number]),
      kib(lambda number: LARGE % OTHERS[number]),
      kib(lambda number: ABOVE[number] & 2047),
      kib(lambda number: (LARGE - OTHERS[number]) + 0))
PYTHON
read -r difference exclusive remainder masked added < <(python3 difference.py)
echo "KiB for each number of 28 bytes: differences $difference, exclusive or" \
  "$exclusive, remainders $remainder, by & $masked, differences + 0 $added"
((difference > 900 && exclusive > 900 && remainder > 900 && masked < 10)) &&
  ((added < 10)) || { echo "not what was seen"; exit 1; }
