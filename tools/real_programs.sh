#!/bin/bash
# Runs real programs on libc's malloc and on hakmem, and compares what they say.
#   tools/real_programs.sh [--all] [--library PATH] [--only NAME]… [--cache DIR] [--list]
# Programs: tools/real_programs/programs/NAME.sh. Needs tools/setup.sh [--all].
set -euo pipefail
cd "$(dirname "$0")/.."

library=
arguments=()
while (( $# )); do
  case $1 in
    --library)
      (( $# >= 2 )) || { echo "real_programs: --library needs a path" >&2; exit 2; }
      library=$2
      shift ;;
    --list) library=unused; arguments+=("$1") ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
if [[ -z $library ]]; then
  bazel build --noshow_progress --ui_event_filters=-info //allocator:preload_release
  library=$(bazel info --ui_event_filters=-info bazel-bin 2>/dev/null)/allocator/libhakmem.so
fi
exec /usr/bin/python3 tools/real_programs/run.py --library "$library" "${arguments[@]}"
