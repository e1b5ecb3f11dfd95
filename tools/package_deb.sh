#!/bin/bash
# Makes Debian packages of this machine's architecture: libhakmem0, its debug
# information (libhakmem0-dbgsym), libhakmem-dev, and hakmem (the command, its
# pages and completions).
#   tools/package_deb.sh OUTPUT_DIRECTORY
# Two builds of one commit are the same, byte for byte. SOURCE_DATE_EPOCH is the
# commit's time, if nothing else is said. HAK_CACHE and HAK_BAZEL: see build_command.sh.
set -euo pipefail
if [[ $# != 1 || $1 == -* ]]; then
  echo "usage: tools/package_deb.sh OUTPUT_DIRECTORY" >&2
  exit 2
fi
mkdir -p "$1"
output=$(realpath "$1")
cd "$(dirname "$0")/.."
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} LC_ALL=C
umask 022
maintainer="${DEBFULLNAME:-$(git log -1 --format=%cn)} <${DEBEMAIL:-$(git log -1 --format=%ce)}>"
architecture=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

quietly() {
  "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
}

# --- What is packed --------------------------------------------------------
command=$(tools/build_command.sh --define=libdw=shared)
quietly tools/amalgamate.py "$scratch/source"
quietly tools/command_pages.py "$command" "$scratch/pages"
version=$(sed -n 's/^#define HAKMEM_VERSION_[MP][A-Z]* //p' allocator/hakmem.h | paste -sd .)-1
variants="release tracing hardened debug"
# Debuggers ask for the sources where the source release would be installed.
quietly make -C "$scratch/source" -j"$(nproc)" VARIANTS="$variants" PREFIX=/usr \
  CXXFLAGS="-O2 -g -ffile-prefix-map=$scratch/source=/usr/src/hakmem-${version%-*}" LDFLAGS="-Wl,--build-id" LIBDIR="/usr/lib/$triplet" DESTDIR="$scratch/all" install

# file MODE SOURCE TARGET
file() {
  install -D -m "$1" "$2" "$scratch/$3"
}

# documents PACKAGE: what every package has.
documents() {
  local folder=$scratch/$1/usr/share/doc/$1
  mkdir -p "$folder"
  cat >"$folder/copyright" <<'END'
hakmem is Copyright 2026 the hakmem authors.

Its license is the Apache License, Version 2.0. On Debian systems, the text is in
/usr/share/common-licenses/Apache-2.0.
END
  [[ $1 != hakmem ]] || cat >>"$folder/copyright" <<'END'

The command has libiberty's demangler linked in, of Debian's package libiberty-dev:
Copyright Free Software Foundation, Inc. Its license is the GNU Lesser General
Public License, Version 2.1 or later: /usr/share/common-licenses/LGPL-2.1.
END
  printf 'hakmem (%s) unstable; urgency=medium\n\n  * What changed is in CHANGELOG.md of the sources.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$folder/changelog.Debian.gz"
}

# needs PACKAGE FILE...: the packages of the libraries that its files load. To be
# assigned, as what fails within another command's arguments does not end this.
needs() {
  local package=$1
  shift
  mkdir -p "$scratch/debian"
  printf 'Source: hakmem\n\nPackage: %s\nArchitecture: any\n' "$package" >"$scratch/debian/control"
  (cd "$scratch" && quietly dpkg-shlibdeps -Tsubstvars "$@") &&
    sed -n 's/^shlibs:Depends=//p' "$scratch/substvars"
}

# pack PACKAGE SECTION DEPENDS SUMMARY DESCRIPTION [FIELD...]
pack() {
  local root=$scratch/$1
  [[ -L $root/usr/share/doc/$1 ]] || documents "$1"
  mkdir -p "$root/DEBIAN"
  {
    printf 'Package: %s\nSource: hakmem\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' "$1" "$version" "$architecture" "$maintainer"
    printf 'Installed-Size: %s\nDepends: %s\nSection: %s\nPriority: optional\n' "$(du -sk --apparent-size "$root" | cut -f1)" "$3" "$2"
    [[ $1 == hakmem ]] || echo 'Multi-Arch: same'
    (( $# < 6 )) || printf '%s\n' "${@:6}"
    printf 'Description: %s\n' "$4"
    fold -s -w 78 <<<"$5" | sed 's/ *$//; s/^/ /'
  } >"$root/DEBIAN/control"
  (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  quietly dpkg-deb --root-owner-group -Zxz --build "$root" "$output"
}

about="It takes the place of the C library's malloc and of the operators new and delete. \
Every free of a pointer that is no live block is found, and a call that fails says why."
libraries=usr/lib/$triplet

# --- libhakmem0 ------------------------------------------------------------
mkdir -p "$scratch/libhakmem0/$libraries/hakmem" "$scratch/libhakmem0/DEBIAN"
build_ids=()
for variant in $variants; do
  name=libhakmem-$variant
  [[ $variant != release ]] || name=libhakmem
  cp -a "$scratch/all/$libraries/$name".so.* "$scratch/libhakmem0/$libraries/"
  library=$(echo "$scratch/libhakmem0/$libraries/$name".so.*.*)
  build_id=$(readelf -n "$library" | sed -n 's/^ *Build ID: //p')
  debug=$scratch/libhakmem0-dbgsym/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug
  mkdir -p "$(dirname "$debug")"
  objcopy --only-keep-debug --compress-debug-sections=zlib "$library" "$debug"
  strip --strip-unneeded --remove-section=.comment "$library"
  chmod 644 "$library" "$debug"
  build_ids+=("$build_id")
  # Where the command finds them without the links that belong to -dev.
  ln -s "../$name.so.0" "$scratch/libhakmem0/$libraries/hakmem/$name.so"
  echo "$name 0 libhakmem0 (>= ${version%-*})" >>"$scratch/libhakmem0/DEBIAN/shlibs"
done
echo "activate-noawait ldconfig" >"$scratch/libhakmem0/DEBIAN/triggers"
needed=$(needs libhakmem0 "$scratch/libhakmem0/$libraries"/*.so.*.*)
pack libhakmem0 libs "$needed" "malloc that knows every pointer" \
  "$about This package has the release, tracing, hardened and debug variants."

# --- libhakmem0-dbgsym -----------------------------------------------------
mkdir -p "$scratch/libhakmem0-dbgsym/usr/share/doc"
ln -s libhakmem0 "$scratch/libhakmem0-dbgsym/usr/share/doc/libhakmem0-dbgsym"
pack libhakmem0-dbgsym debug "libhakmem0 (= $version)" "debug symbols for libhakmem0" \
  "Debuggers and profilers find them by build id." "Auto-Built-Package: debug-symbols" "Build-Ids: ${build_ids[*]}"

# --- libhakmem-dev ---------------------------------------------------------
mkdir -p "$scratch/libhakmem-dev/usr/lib"
cp -a "$scratch/all/usr/include" "$scratch/libhakmem-dev/usr/"
cp -a "$scratch/all/usr/lib/$triplet" "$scratch/libhakmem-dev/usr/lib/"
rm "$scratch/libhakmem-dev/$libraries"/*.so.*
strip --strip-debug --enable-deterministic-archives --remove-section=.comment --remove-section=.note "$scratch/libhakmem-dev/$libraries"/*.a
pack libhakmem-dev libdevel "libhakmem0 (= $version), libc6-dev" "malloc that knows every pointer (for development)" \
  "$about This package has the header, the static libraries and what pkg-config and CMake look for."

# --- hakmem ----------------------------------------------------------------
file 755 "$command" hakmem/usr/bin/hakmem
strip --strip-unneeded --remove-section=.comment "$scratch/hakmem/usr/bin/hakmem"
file 644 "$scratch/pages/hakmem.bash" hakmem/usr/share/bash-completion/completions/hakmem
file 644 "$scratch/pages/_hakmem" hakmem/usr/share/zsh/vendor-completions/_hakmem
file 644 "$scratch/pages/hakmem.fish" hakmem/usr/share/fish/vendor_completions.d/hakmem.fish
for page in hakmem.1 libhakmem.7; do
  file 644 "$scratch/pages/$page" "hakmem/usr/share/man/man${page##*.}/$page"
  gzip -9n "$scratch/hakmem/usr/share/man/man${page##*.}/$page"
done
file 644 dist/serve/hakmem-serve.service hakmem/usr/lib/systemd/system/hakmem-serve.service
for name in hakmem.rules.yml hakmem.grafana.json; do
  file 644 "dist/serve/$name" "hakmem/usr/share/hakmem/$name"
done
needed=$(needs hakmem "$scratch/hakmem/usr/bin/hakmem")
pack hakmem devel "libhakmem0 (= $version), $needed" \
  "run programs on a malloc whose failed allocations explain themselves" \
  "$about This package has the command that runs programs on it, explains failures and reads traces."
