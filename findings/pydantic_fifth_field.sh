#!/bin/bash
# pydantic 2.10.4 (PyPI) on CPython 3.11: the fifth field of a model takes 512 bytes of
# each object, and the second to the fourth take nothing.
#
# A good guess: one field more is one pointer more in each object. Seen: each object has
# a dictionary, and a set of the names that were given, for exclude_unset. CPython's set
# has room for four names, and its next size has 32 entries of 16 bytes. So an object of
# a model with five fields takes twice that of four.
#
# Seen: bytes of an object of 1, 4, 5, 8 fields of type int: 479 475 991 1079.
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHONMALLOC
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install pydantic==2.10.4 \
  pydantic-core==2.27.2 annotated-types==0.7.0 typing-extensions==4.12.2
cat >fields.py <<'PYTHON'
import sys
import tracemalloc

import pydantic

OBJECTS = 10000


def size(fields):
    names = [f"field{index}" for index in range(fields)]
    model = pydantic.create_model("Model", **{name: (int, ...) for name in names})
    values = dict.fromkeys(names, 1)
    model(**values)
    before = tracemalloc.get_traced_memory()[0]
    objects = [model(**values) for _ in range(OBJECTS)]
    return (tracemalloc.get_traced_memory()[0] - before - sys.getsizeof(objects)) // OBJECTS


tracemalloc.start()
print(*(size(fields) for fields in (1, 4, 5, 8)))
PYTHON
read -r one four five eight <<<"$(venv/bin/python fields.py)"
echo "bytes of an object of 1, 4, 5 and 8 fields: $one $four $five $eight"
((four - one < 50 && five - four > 400 && eight - five < 150)) ||
  { echo "not what was seen"; exit 1; }
