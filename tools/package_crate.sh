#!/bin/bash
# Makes the Rust crate whole and packs it.
#   tools/package_crate.sh OUTPUT_DIRECTORY    hakmem/, bench/ and hakmem-VERSION.crate there
set -euo pipefail
if [[ $# != 1 || $1 == -* ]]; then
  echo "usage: tools/package_crate.sh OUTPUT_DIRECTORY" >&2
  exit 2
fi
mkdir -p "$1"
output=$(realpath "$1")
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

version=$(sed -n 's/^#define HAKMEM_VERSION_[MP][A-Z]* //p' allocator/hakmem.h | paste -sd .)
if ! grep -qx "version = \"$version\"" dist/rust/hakmem/Cargo.toml; then
  echo "hakmem: dist/rust/hakmem/Cargo.toml is not of version $version" >&2
  exit 1
fi
# What hakmem.h declares, without its comments.
functions=$(sed -zE 's:/\*([^*]|\*+[^*/])*\*+/::g' allocator/hakmem.h | sed -nE 's/.*\b(hakmem_\w+)\(.*/\1/p' | sort -u)
missing=$(comm -23 <(echo "$functions") <(sed -nE 's/.*\bfn (hakmem_\w+)\(.*/\1/p' dist/rust/hakmem/src/ffi.rs | sort -u))
if [[ -z $functions || -n $missing ]]; then
  echo "hakmem: dist/rust/hakmem/src/ffi.rs lacks functions of hakmem.h: ${missing//$'\n'/ }" >&2
  exit 1
fi
# What is there is replaced if it was made here; a clone is often called hakmem, too.
for folder in hakmem bench; do
  if [[ -e $output/$folder && ! -e $output/$folder/.made_by_package_crate ]]; then
    echo "hakmem: $output/$folder is in the way: it was not made by tools/package_crate.sh" >&2
    exit 1
  fi
done
tools/amalgamate.py "$scratch"
rm -rf "$output/hakmem" "$output/bench"
cp -R dist/rust/hakmem dist/rust/bench "$output"
touch "$output"/{hakmem,bench}/.made_by_package_crate
mkdir "$output/hakmem/native"
cp "$scratch"/{hakmem.cc,hakmem_new.cc,hakmem.h,copy_names.txt} "$output/hakmem/native"
cp LICENSE "$output/hakmem"
# What stands in for others' symbols, under names of its own.
sed '/^hakmem_/d; s/.*/& hakmem_&/' allocator/tests/exports.txt >"$output/hakmem/native/prefixed_names.txt"
cargo package --quiet --no-verify --allow-dirty --manifest-path "$output/hakmem/Cargo.toml" --target-dir "$scratch/target"
cp "$scratch/target/package/hakmem-$version.crate" "$output"
