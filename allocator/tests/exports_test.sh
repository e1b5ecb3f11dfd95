#!/bin/bash
# exports_test.sh LIBRARY LIST: the library's dynamic symbols are exactly the
# listed ones.
set -euo pipefail
export LC_ALL=C
if ! diff --unified=0 --label="listed in $2" --label="defined by $1" \
    <(sort -u "$2") <(nm --dynamic --defined-only --format=posix "$1" | cut -d' ' -f1 | sort); then
  echo "$1 does not define exactly the listed symbols" >&2
  exit 1
fi
