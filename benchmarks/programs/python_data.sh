#!/bin/bash
# CPython reads and writes JSON, CSV and pickles, and compiles source text.
source "$(dirname "$0")/common.sh"

work() {
  local rounds=12
  [[ $1 == full ]] || rounds=2
  PYTHONHASHSEED=0 python3 -s "$programs/data.py" "$rounds"
}

main "$@"
