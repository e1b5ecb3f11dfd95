#!/bin/bash
# fork_stress.sh [--preload LIBRARY] PROGRAM FORKS: every scenario of fork_stress,
# with HAK_TEST_FACTOR times as many forks.
set -euo pipefail
library=
if [[ $1 == --preload ]]; then
  library=$(realpath "$2")
  shift 2
fi
for scenario in alone handlers streams libc registering signals young interrupted cloned; do
  echo "$scenario"
  env ${library:+LD_PRELOAD="$library"} "$1" "$scenario" $(($2 * ${HAK_TEST_FACTOR:-1}))
done
