# title: CPython's own tests, every object from malloc
# serves: python3
# seconds: 900
# needs: python3
set -euo pipefail
mapfile -t tests < <(grep -v '^#' "$PROGRAMS/python_tests.txt")
# Without its own pool of small objects, all of them come from malloc.
export PYTHONMALLOC=malloc PYTHONHASHSEED=1
python3 -m test -j2 --junit-xml="$HOME/results.xml" "${tests[@]}" >&2
python3 "$PROGRAMS/test_results.py" results.xml
