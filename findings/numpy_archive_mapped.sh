#!/bin/bash
# numpy 2.2.1 (PyPI, CPython 3.11): mmap_mode does nothing for an archive of arrays, and
# each use of a name reads the array anew.
#
# A good guess: numpy.load(file, mmap_mode="r") maps the arrays of a .npz file as it
# maps the one of a .npy file, or says that it cannot, as the archive is not compressed
# and the bytes lie there as they are; and archive["a"] is one array, as for a
# dictionary. Seen: the option is taken and left, without a warning. Each archive["a"]
# reads the file and makes a new array, so an expression that names an array five times
# reads it five times, and five kept results are five arrays.
#
# Seen: MiB by tracemalloc of an array of 8 MiB: mapped of the .npy file 0, opened of
# the .npz file 0, used once 8, used and kept five times more 48; mapped arrays of the
# archive 0; the arrays are not the same.
#
# Needs python3 (3.10 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install numpy==2.2.1
cat >mapped.py <<'PYTHON'
import tracemalloc

import numpy as np


def show():
    print((tracemalloc.get_traced_memory()[0] - before + (1 << 19)) >> 20, end=" ")


np.save("array.npy", np.ones(1 << 20))
np.savez("arrays.npz", a=np.ones(1 << 20))
np.load("arrays.npz", mmap_mode="r")["a"]
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
array = np.load("array.npy", mmap_mode="r")
show()
archive = np.load("arrays.npz", mmap_mode="r")
show()
first = archive["a"]
show()
more = [archive["a"] for _ in range(5)]
show()
print(sum(isinstance(use, np.memmap) for use in more), first is more[0])
PYTHON
seen=$(venv/bin/python -W error mapped.py)
echo "MiB of a mapped .npy, an opened .npz, a used array, five more uses; mapped" \
  "ones; the same: $seen"
[[ $seen == "0 0 8 48 0 False" ]] || { echo "not what was seen"; exit 1; }
