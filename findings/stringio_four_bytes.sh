#!/bin/bash
# CPython 3.11 (also 3.13): io.StringIO(text) takes four times the text, and a write of
# the same text takes nothing.
#
# A good guess: a str knows that its letters are ASCII and takes a byte for each, and an
# io.StringIO of it is that str with a position, or a copy of it. Seen: what is given to
# the constructor is copied at once into an array of four bytes for each letter. What
# is written is only collected, and becomes such an array at the first read or other
# use. So csv.reader(io.StringIO(text)) and its like have five times the text in memory.
# sys.getsizeof of the StringIO says less than 200 bytes each time.
#
# Seen: MiB by tracemalloc for 64 MiB of ASCII text: io.StringIO(text) 256; written to
# an empty one 0, after seek(0) and read(1) 256.
#
# Needs python3 (3.11 to 3.13). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >text.py <<'PYTHON'
import io
import sys
import tracemalloc

text = "line\n" * ((64 << 20) // 5)


def mib():
    return (tracemalloc.get_traced_memory()[0] + (1 << 19)) >> 20


tracemalloc.start()
given = io.StringIO(text)
constructed, told = mib(), sys.getsizeof(given)
del given
collected = io.StringIO()
collected.write(text)
written = mib()
collected.seek(0)
collected.read(1)
print(constructed, written, mib(), told)
PYTHON
read -r constructed written read told < <(python3 text.py)
echo "MiB by tracemalloc of 64 of text, $(python3 --version): constructed" \
  "$constructed, written $written, then read $read; sys.getsizeof: $told bytes"
((constructed == 256 && written < 8 && read == 256 && told < 1024)) ||
  { echo "not what was seen"; exit 1; }
