#!/bin/bash
# Makes all that a release consists of, from what is committed: the sources, the
# amalgamated sources, Debian packages, the wheel, the crate, what they are made of
# (SPDX), checksums.
#   tools/release.sh [--check] OUTPUT_DIRECTORY
# With --check everything is made twice, and has to be the same byte for byte.
# HAK_CACHE and HAK_BAZEL: see build_command.sh.
set -euo pipefail
check=no
[[ ${1-} != --check ]] || { check=yes; shift; }
if [[ $# != 1 || $1 == -* ]]; then
  echo "usage: tools/release.sh [--check] OUTPUT_DIRECTORY" >&2
  exit 2
fi
mkdir -p "$1"
output=$(realpath "$1")
cd "$(dirname "$0")/.."
fail() {
  echo "hakmem: $*" >&2
  exit 1
}
[[ -z $(ls "$output") ]] || fail "$output is not empty"
[[ -z $(git status --porcelain) ]] || fail "what is not committed cannot be released"
version=$(sed -n 's/^#define HAKMEM_VERSION_[MP][A-Z]* //p' allocator/hakmem.h | paste -sd .)
grep -q "^## $version\b" CHANGELOG.md || fail "CHANGELOG.md does not know $version"
grep -qx "    version = \"$version\"," MODULE.bazel || fail "MODULE.bazel is not of version $version"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# make_release FOLDER
make_release() {
  local to=$1 amalgamated=hakmem-amalgamated-$version
  mkdir -p "$to"
  git archive --prefix="hakmem-$version/" HEAD | gzip -9n >"$to/hakmem-$version.tar.gz"
  tools/amalgamate.py "$scratch/$amalgamated"
  tar -C "$scratch" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+rX,go-w \
    -c "$amalgamated" | gzip -9n >"$to/$amalgamated.tar.gz"
  rm -r "${scratch:?}/$amalgamated"
  tools/package_deb.sh "$to"
  tools/package_wheel.py "$to"
  tools/package_crate.sh "$scratch/crate"
  mv "$scratch"/crate/*.crate "$to"
  rm -r "$scratch/crate"
  tools/sbom.py "$version" "$to"/* >"$scratch/sbom"
  mv "$scratch/sbom" "$to/hakmem-$version.spdx.json"
  (cd "$to" && LC_ALL=C && sha256sum -- * >"$scratch/sums" && mv "$scratch/sums" SHA256SUMS)
}

make_release "$output"
if [[ $check == yes ]]; then
  (umask 077 && TZ=Asia/Kathmandu && export TZ && make_release "$scratch/again")
  diff -r "$output" "$scratch/again" || fail "the second build is not the first"
  (cd "$output" && sha256sum --quiet --check SHA256SUMS)
fi
ls "$output"
