#!/bin/bash
# CPython makes and drops many small objects. PYTHONMALLOC=malloc takes them
# all from malloc; without it, CPython's own pools stand between.
source "$(dirname "$0")/common.sh"

work() {
  local rounds=30
  [[ $1 == full ]] || rounds=12
  PYTHONHASHSEED=0 python3 -s "$programs/objects.py" "$rounds"
}

main "$@"
