#!/bin/bash
# Builds targets and prints the folder they are in: build.sh CONFIG TARGET…
# An empty CONFIG is the default. For the scripts beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
config=()
[[ -z $1 ]] || config=("--config=$1")
shift
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
mkdir -p "$cache/bazel"
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
options=("${config[@]}" "--disk_cache=$cache/bazel")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${bazel[@]}" build --noshow_progress "${options[@]}" "$@" >"$log" 2>&1 ||
  ! "${bazel[@]}" info "${options[@]}" bazel-bin 2>>"$log"; then
  cat "$log" >&2
  exit 1
fi
