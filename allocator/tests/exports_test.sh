#!/bin/bash
# exports_test.sh LIBRARY LIST...: the library's dynamic symbols are exactly the
# listed ones.
set -euo pipefail
export LC_ALL=C
library=$1
shift
if ! diff --unified=0 --label="listed in $*" --label="defined by $library" \
    <(sort -u "$@") <(nm --dynamic --defined-only --format=posix "$library" | cut -d' ' -f1 | sort); then
  echo "$library does not define exactly the listed symbols" >&2
  exit 1
fi
