#!/bin/bash
# preloaded.sh LIBRARY PROGRAM [ARGS…]: runs the program with the library
# preloaded, having made sure that the loader takes it. No allocation is guarded
# by chance, of which hardened would tell.
set -euo pipefail
library=$(realpath "$1")
program=./$2
shift 2
# Not in a pipe to grep -q: the loader would sometimes die of SIGPIPE.
objects=$(LD_TRACE_LOADED_OBJECTS=1 LD_PRELOAD=$library "$program")
if [[ $objects != *"$library"* ]]; then
  echo "the loader does not load $library into $program" >&2
  exit 1
fi
export HAKMEM_GUARD_SAMPLE=${HAKMEM_GUARD_SAMPLE-0}
export HAKMEM_WARN_WEAKENED=${HAKMEM_WARN_WEAKENED-0}
LD_PRELOAD=$library exec "$program" "$@"
