#!/bin/bash
# Builds the release library and tools/measure and prints the paths of both.
# HAK_CACHE names another folder for what is kept between runs, HAK_BAZEL
# another command line for bazel.
#   tools/build_library.sh [--measure-only]
set -euo pipefail
cd "$(dirname "$0")/.."
targets=(//tools/measure //allocator:preload_release)
[[ ${1-} != --measure-only ]] || targets=(//tools/measure)
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
mkdir -p "$cache/bazel"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${bazel[@]}" build --noshow_progress "--disk_cache=$cache/bazel" "${targets[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
folder=$("${bazel[@]}" info "--disk_cache=$cache/bazel" bazel-bin 2>"$log") || { cat "$log" >&2; exit 1; }
echo "$folder/allocator/libhakmem.so"
echo "$folder/tools/measure/measure"
