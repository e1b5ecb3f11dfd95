#!/bin/bash
# fork_stress.sh [--preload LIBRARY] PROGRAM FORKS: every scenario of fork_stress,
# with HAK_TEST_FACTOR times as many forks; those of this shard, as Bazel numbers them.
set -euo pipefail
library=
if [[ $1 == --preload ]]; then
  library=$(realpath "$2")
  shift 2
fi
[[ -z ${TEST_SHARD_STATUS_FILE:-} ]] || touch "$TEST_SHARD_STATUS_FILE"
scenarios=(alone handlers streams libc registering signals young interrupted cloned)
for ((i = ${TEST_SHARD_INDEX:-0}; i < ${#scenarios[@]}; i += ${TEST_TOTAL_SHARDS:-1})); do
  scenario=${scenarios[i]}
  echo "$scenario"
  env ${library:+LD_PRELOAD="$library"} "$1" "$scenario" $(($2 * ${HAK_TEST_FACTOR:-1}))
done
