# title: CPython's own tests of threads, processes and large objects, with its own pools over malloc
# serves: python3
# seconds: 600
# needs: python3
set -euo pipefail
export PYTHONHASHSEED=1
python3 -m test -j2 --junit-xml="$HOME/results.xml" \
  test_dict test_fork1 test_gc test_list test_mmap \
  test_multiprocessing_main_handling test_pickle test_re test_subprocess \
  test_threading test_zipfile test_zlib >&2
python3 "$PROGRAMS/test_results.py" results.xml
