#!/bin/bash
# Installs hakmem as its users do, each time from nothing, and runs programs whose
# statistics prove that they ran on it.
#   tools/installations.sh [NAME...]    deb, crate, wheel, release; without a name, all
# As root, or as a user with sudo. Debian's packages for it are in
# tools/packages_all.txt; the crate takes cargo 1.77 beside. HAK_CACHE and HAK_BAZEL: see build_command.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
names=("$@")
(( $# )) || names=(deb crate wheel release)
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
mkdir -p "$cache"
scratch=$(mktemp -d)
sudo=()
[[ $(id -u) == 0 ]] || sudo=(sudo)
trap '"${sudo[@]}" rm -rf "$scratch"' EXIT

fail() {
  echo "installations: $*" >&2
  exit 1
}

# --- Debian's packages, in a root that has nothing else ------------------------
# inside ROOT COMMAND...: with /proc, as programs expect.
inside() {
  local root=$1
  shift
  "${sudo[@]}" unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# proves ROOT VARIANT COMMAND...: the command's statistics say that it ran on it.
proves() {
  local root=$1 variant=$2
  shift 2
  inside "$root" env HAKMEM_STATS=/tmp/statistics "$@" >"$scratch/output" || fail "deb: $* failed"
  grep -q "\"variant\": *\"$variant\"" "$root/tmp/statistics" || fail "deb: $* did not run on $variant"
  "${sudo[@]}" rm "$root/tmp/statistics"
}

install_deb() {
  local root=$scratch/root bare=$cache/roots/bookworm
  tools/package_deb.sh "$scratch/deb"
  lintian --allow-root --fail-on error "$scratch"/deb/*.deb >"$scratch/lintian" || { cat "$scratch/lintian"; fail "deb: lintian"; }
  if [[ ! -d $bare ]]; then
    mkdir -p "$cache/roots"
    "${sudo[@]}" debootstrap --variant=minbase bookworm "$bare.new" >"$scratch/log" || { cat "$scratch/log"; fail "deb: no root"; }
    "${sudo[@]}" mv "$bare.new" "$bare"
  fi
  "${sudo[@]}" cp -a "$bare" "$root"
  "${sudo[@]}" cp "$scratch"/deb/{hakmem,libhakmem0}_*.deb "$root/tmp"
  inside "$root" sh -c 'apt-get install -y /tmp/*.deb' >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "deb: apt-get"; }
  proves "$root" release env LD_PRELOAD=libhakmem.so.0 sort /etc/passwd
  local variant file
  for variant in release tracing hardened debug; do
    proves "$root" "$variant" hakmem run --variant="$variant" -- sort /etc/passwd
  done
  for file in man/man1/hakmem.1.gz man/man7/libhakmem.7.gz bash-completion/completions/hakmem \
    zsh/vendor-completions/_hakmem fish/vendor_completions.d/hakmem.fish; do
    inside "$root" dpkg -L hakmem | grep -qx "/usr/share/$file" || fail "deb: no $file"
  done
  # The compiler is this machine's: what is linked goes by the packages' files.
  local triplet dev=$scratch/dev
  triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  for file in "$scratch"/deb/libhakmem*.deb; do dpkg-deb -x "$file" "$dev"; done
  local flags
  flags=$(PKG_CONFIG_SYSROOT_DIR=$dev PKG_CONFIG_LIBDIR=$dev/usr/lib/$triplet/pkgconfig pkg-config --cflags --libs hakmem)
  # shellcheck disable=SC2086
  sed 's|"hakmem.h"|<hakmem/hakmem.h>|' dist/tests/program.c | cc -x c - -o "$scratch/program" -Wl,--no-as-needed $flags
  "${sudo[@]}" cp "$scratch/program" "$root/tmp/program"
  proves "$root" release /tmp/program
  inside "$root" dpkg --purge hakmem libhakmem0 >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "deb: purge"; }
  [[ ! -e $root/usr/lib/$triplet/libhakmem.so.0 ]] || fail "deb: libhakmem.so.0 is left"
}

# --- Rust's crate ------------------------------------------------------------
install_crate() {
  command -v cargo >/dev/null || fail "crate: there is no cargo"
  tools/package_crate.sh "$scratch/crate"
  # As it is packed: nothing may be missing there.
  mkdir "$scratch/unpacked"
  tar -xzf "$scratch"/crate/hakmem-*.crate -C "$scratch/unpacked" --strip-components=1
  local features
  for features in "" hardened debug override override,hardened; do
    cargo test --quiet --manifest-path "$scratch/unpacked/Cargo.toml" --features "$features" >"$scratch/log" 2>&1 ||
      { cat "$scratch/log"; fail "crate: the tests with features '$features'"; }
  done
  cargo run --quiet --release --manifest-path "$scratch/crate/bench/Cargo.toml" -- 50000 >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "crate: the benchmark"; }
  grep -q '^hakmem served [0-9]\{6,\} blocks' "$scratch/log" || fail "crate: the benchmark did not run on hakmem"
}

# --- Python's wheel ------------------------------------------------------------
install_wheel() {
  tools/package_wheel.py "$scratch/wheel"
  python3 -m venv "$scratch/venv"
  "$scratch/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$scratch"/wheel/hakmem-*.whl
  echo 'print(sum(len(str(i) * 50) for i in range(10000)))' >"$scratch/app.py"
  local variant how statistics=$scratch/statistics
  for variant in release tracing hardened debug; do
    for how in "$scratch/venv/bin/hakmem" "$scratch/venv/bin/python -m hakmem"; do
      # shellcheck disable=SC2086
      [[ $(HAKMEM_STATS=$statistics $how run --variant="$variant" -- "$scratch/venv/bin/python" "$scratch/app.py") == 1944500 ]] ||
        fail "wheel: $how run on $variant failed"
      grep -q "\"variant\": *\"$variant\"" "$statistics" || fail "wheel: $how run did not run on $variant"
      rm "$statistics"
    done
  done
  LD_PRELOAD=$("$scratch/venv/bin/python" -c 'import hakmem; print(hakmem.library())') HAKMEM_STATS=$statistics sort /etc/passwd >"$scratch/log"
  grep -q '"variant": *"release"' "$statistics" || fail "wheel: hakmem.library() is not the library"
}

# --- A release: twice the same, and what is in it builds -------------------------
install_release() {
  tools/release.sh --check "$scratch/release" >"$scratch/log" || { cat "$scratch/log"; fail "release"; }
  tar -xzf "$scratch"/release/hakmem-amalgamated-*.tar.gz -C "$scratch"
  (cd "$scratch"/hakmem-amalgamated-* && cmake -B build -DHAKMEM_VARIANTS=release && cmake --build build &&
    ctest --test-dir build --output-on-failure && cmake --install build --prefix "$scratch/prefix") >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "release: its sources"; }
  [[ $(readlink "$scratch/prefix"/lib*/libhakmem.so) == libhakmem.so.0 ]] || fail "release: no libhakmem.so"
}

for name in "${names[@]}"; do
  "install_$name"
  echo "installations: $name: ok"
done
echo "${#names[@]} passed, 0 failed"
