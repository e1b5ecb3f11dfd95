# title: the newest CPythons, with pools of their own and every object from malloc
# serves: python3.*
# seconds: 180
# needs: python3 python3.15
set -euo pipefail
export PYTHONHASHSEED=1
for program in python3 python3.15; do
  for pools in pymalloc malloc; do
    PYTHONMALLOC=$pools "$program" "$PROGRAMS/newest/work.py"
  done
done
