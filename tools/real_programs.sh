#!/bin/bash
# Runs real programs on libc's malloc and on hakmem, and compares what they say.
#   tools/real_programs.sh [--all] [--library PATH] [--only NAME]… [--cache DIR] [--patience SECONDS] [--list]
# Programs: tools/real_programs/programs/NAME.sh. Needs tools/setup.sh [--all].
# Without --library it builds the release product.
set -euo pipefail
cd "$(dirname "$0")/.."

library=()
for argument in "$@"; do
  case $argument in
    --library | --library=* | --list | -h | --help) library=(given) ;;
  esac
done
if (( ! ${#library[@]} )); then
  built=$(tools/build_library.sh)
  library=(--library "${built%%$'\n'*}")
else
  library=()
fi
exec /usr/bin/python3 tools/real_programs/run.py "${library[@]}" "$@"
