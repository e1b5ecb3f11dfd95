#!/bin/bash
# Makes the profile of --config=release-pgo anew: builds the release library
# with counters, runs the suite's synthetic programs and traces on it, and puts
# what it counted into the tree, under a name with its hash that .bazelrc names.
# Takes three minutes. To do after a change of the hot paths, and before a
# release; tools/pgo/check.sh says how much of a profile is out of date.
# HAK_CACHE names another folder for what is kept between runs, HAK_BAZEL
# another command line for bazel.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# == 0 ]] || {
  echo "usage: tools/pgo/train.sh" >&2
  exit 2
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Not with counters, or they would write profiles of their own.
programs=$(tools/pgo/build.sh "" //benchmarks //benchmarks/traces:replay)
library=$(tools/pgo/build.sh pgo_train //allocator:preload_release)/allocator/libhakmem.so
tools/pgo/pgo_profile.py train "$library" "$programs" "$scratch"
llvm-profdata-19 merge -sparse -o "$scratch/merged" "$scratch"/*.profraw

hash=$(sha256sum "$scratch/merged")
name=hakmem-${hash:0:12}.profdata
rm -f tools/pgo/hakmem-*.profdata
install -m 644 "$scratch/merged" "tools/pgo/$name"
sed -i "s|tools/pgo/hakmem-[0-9a-z]*\.profdata|tools/pgo/$name|; s|\(HAK_BUILD_PROFILE=\).*|\1${hash:0:12}|" .bazelrc
echo "tools/pgo/$name; .bazelrc names it. Commit both."
