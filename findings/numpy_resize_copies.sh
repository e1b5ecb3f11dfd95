#!/bin/bash
# numpy 2.2.1 (PyPI) over glibc 2.36, Linux 6.18: numpy's advice for huge pages makes
# realloc copy numpy's own arrays.
#
# A good guess: realloc of a block that has a mapping of its own is mremap, so
# ndarray.resize of a large array moves page tables and copies nothing. Seen: numpy
# gives MADV_HUGEPAGE to the whole pages of an array, and malloc's header lies in the
# page before them. So the block is two mappings. mremap takes a range of one only
# (EFAULT), and glibc falls back on malloc, memcpy and free: the array is in memory
# twice. Neither reports it. Without the advice the peak is half, and 256 pages are
# faulted in place of all.
#
# Seen: to grow 256 MiB by 1 MiB, minor faults and MiB more at the peak: 65793 faults
# and 256 MiB by default, 256 faults and 1 MiB with NUMPY_MADVISE_HUGEPAGE=0. (The new
# block lies in small pages: the advice is not given again.)
#
# Needs python3 (3.10 to 3.13) with venv, 600 MiB of memory, a kernel with transparent
# huge pages. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install numpy==2.2.1
cat >grow.py <<'PYTHON'
import resource

import numpy

mib = 1 << 20
array = numpy.ones(256 * mib, numpy.uint8)
before = resource.getrusage(resource.RUSAGE_SELF)
array.resize(257 * mib, refcheck=False)
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_minflt - before.ru_minflt, (after.ru_maxrss - before.ru_maxrss) >> 10)
PYTHON
read -r faults peak < <(env -u NUMPY_MADVISE_HUGEPAGE venv/bin/python grow.py)
read -r plain_faults plain_peak < <(NUMPY_MADVISE_HUGEPAGE=0 venv/bin/python grow.py)
echo "faults, MiB more at the peak: with advice $faults $peak," \
  "without $plain_faults $plain_peak"
((faults > 60000 && peak > 200 && plain_faults < 3000 && plain_peak < 20)) ||
  { echo "not what was seen"; exit 1; }
