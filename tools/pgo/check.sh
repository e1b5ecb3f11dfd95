#!/bin/bash
# Whether --config=release-pgo builds and conforms, and how much of its profile
# is out of date. Exit status 1: it does not, or the part is above a tenth.
# HAK_CACHE names another folder for what is kept between runs, HAK_BAZEL
# another command line for bazel.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# == 0 ]] || {
  echo "usage: tools/pgo/check.sh" >&2
  exit 2
}
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
mkdir -p "$cache/bazel"
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${bazel[@]}" test --noshow_progress "--disk_cache=$cache/bazel" --config=release-pgo \
  //allocator/tests:deps_test_release //allocator/tests:exports_test_release \
  //allocator/tests/conformance:conformance_test_preloaded_release >"$scratch/log" 2>&1 || {
  cat "$scratch/log" >&2
  exit 1
}
library=$(tools/pgo/build.sh pgo_train //allocator:preload_release)/allocator/libhakmem.so
# A run of any program tells which functions there are now.
LLVM_PROFILE_FILE=$scratch/now.profraw LD_PRELOAD=$library /bin/true
llvm-profdata-19 merge -text -o "$scratch/now" "$scratch/now.profraw"
llvm-profdata-19 merge -text -o "$scratch/then" tools/pgo/hakmem-*.profdata
tools/pgo/pgo_profile.py compare "$scratch/then" "$scratch/now"
