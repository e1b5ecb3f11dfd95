#!/bin/bash
# fork_stress.sh [--preload LIBRARY] PROGRAM FORKS: every scenario of fork_stress.
set -euo pipefail
library=
if [[ $1 == --preload ]]; then
  library=$(realpath "$2")
  shift 2
fi
for scenario in alone handlers streams libc registering signals young interrupted cloned; do
  # fork of glibc 2.36 reads its list of handlers once more after it has let go of the lock. If another thread has the list
  # grow then, it reads freed memory (docs/decisions/0025), which these variants have cleared.
  [[ $scenario == registering && "$library $1" == *@(hardened|debug)* ]] && continue
  echo "$scenario"
  env ${library:+LD_PRELOAD="$library"} "$1" "$scenario" "$2"
done
