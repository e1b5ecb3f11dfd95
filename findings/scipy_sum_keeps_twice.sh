#!/bin/bash
# scipy 1.15.1 (PyPI): the sum of two sparse matrices with the same places takes twice
# its memory, and its figures do not show it.
#
# A good guess: A + A has as many stored elements as A, so it takes as much. Seen: the
# arrays of the result are made for the elements of both operands, and cut to those that
# there are only if less than half is used. A cut below that is a view, so the whole
# array stays behind data and indices. nbytes of both and nnz are right for the view.
# The same holds for multiply, maximum and the like. A copy() of the result is small.
#
# Seen: a matrix of 900,000 elements, MiB by nbytes of data and indices and MiB of the
# arrays behind them: A 10 10, A + A 10 20, A.multiply(A) 10 20, A.maximum(A) 10 20,
# (A + A).copy() 10 10.
#
# Needs python3 (3.10 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install scipy==1.15.1 numpy==2.2.1
cat >sums.py <<'PYTHON'
from scipy import sparse


def behind(array):
    while array.base is not None:
        array = array.base
    return array.nbytes


def show(matrix):
    arrays = (matrix.data, matrix.indices)
    if matrix.nnz != 900000:
        raise SystemExit(1)
    print(sum(array.nbytes for array in arrays) >> 20,
          sum(behind(array) for array in arrays) >> 20, end=" ")


a = sparse.random(3000, 3000, density=0.1, format="csr", random_state=1)
show(a)
show(a + a)
show(a.multiply(a))
show(a.maximum(a))
show((a + a).copy())
PYTHON
seen=$(venv/bin/python sums.py)
echo "MiB by nbytes and behind: A, A + A, A.multiply(A), A.maximum(A), (A + A).copy()" \
  "$seen"
[[ $seen == "10 10 10 20 10 20 10 20 10 10 " ]] || { echo "not what was seen"; exit 1; }
