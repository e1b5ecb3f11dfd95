# title: python3: some of CPython's own tests, every object from malloc
set -euo pipefail
PYTHONMALLOC=malloc PYTHONHASHSEED=1 python3 -m test \
  test_json test_dict test_unicode test_pickle test_threading_local
