#!/bin/bash
# CPython 3.11: tracemalloc shows 9 MB for a list that grew by 1 MB, if the list is
# older than tracemalloc.start().
#
# A good guess: tracemalloc counts what is allocated after its start, so a program can
# start it late, when the large tables are loaded, and compare two snapshots to see the
# growth between them. Seen: realloc of a block that is not traced counts the whole new
# block as new. So the first append that makes an old list grow, or one byte more for a
# bytearray, is shown with all that the object had before, at the line of the append.
# A dict makes a new table when it grows and frees the old one, with the same result.
# The next growth is shown as it is.
#
# Seen: bytes by getsizeof and by tracemalloc of one more element: of an old list of a
# million 1,000,032 and 9,000,064, of a new one 1,000,032 and 1,000,096, of the old
# one's second growth 1,125,056 and 1,125,120.
#
# Needs python3 (3.11). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >growth.py <<'PYTHON'
import sys
import tracemalloc


def grow(values):
    size = sys.getsizeof(values)
    traced = tracemalloc.get_traced_memory()[0]
    while sys.getsizeof(values) == size:
        values.append(None)
    print(sys.getsizeof(values) - size, tracemalloc.get_traced_memory()[0] - traced,
          end=" ")


old = [None] * 1_000_000
tracemalloc.start()
grow(old)
grow([None] * 1_000_000)
grow(old)
print()
PYTHON
seen=$(env -u PYTHONTRACEMALLOC python3 growth.py)
echo "bytes by getsizeof and tracemalloc of an append to an old list, a new one," \
  "again to the old one: $seen"
read -r old told new new_told again again_told <<<"$seen"
((old < 1100000 && told - old >= 8000000 && told - old < 8001000)) &&
  ((new_told - new < 1000 && again_told - again < 1000)) ||
  { echo "not what was seen"; exit 1; }
