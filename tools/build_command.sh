#!/bin/bash
# Builds the hakmem command as it is released and prints its path; arguments go
# to bazel: --define=libdw=shared for a command that asks for libdw.so.1 instead
# of having it (tools/linked_libraries.py). HAK_CACHE names
# another folder for what is kept between runs, HAK_BAZEL another command line
# for bazel.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
mkdir -p "$cache/bazel"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A label, as a revision alone links nothing anew.
label=$(tools/build/workspace_status.sh)
flags=(-c opt "--embed_label=${label#* }" --noshow_progress "--disk_cache=$cache/bazel" "$@")
"${bazel[@]}" build "${flags[@]}" //tools/hakmem >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
folder=$("${bazel[@]}" info "${flags[@]}" bazel-bin 2>"$log") || { cat "$log" >&2; exit 1; }
echo "$folder/tools/hakmem/hakmem"
