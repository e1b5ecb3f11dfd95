#!/bin/bash
# Builds tests of the products with any C++ compiler, and runs them with
# libraries that are built already: for systems that Bazel does not build for.
#   allocator/tests/without_bazel.sh LIBRARIES VARIANT...
# LIBRARIES is the source release's build folder. CXX names the compiler,
# GOOGLETEST the folder of its sources, LEFT_OUT the cases that the system cannot
# run, as a filter of googletest's, LEFT_OUT_VARIANT more of one variant; ABSEIL
# is what links abseil's flags: without it, the stress program is left out. BUILT
# names a folder that keeps the tests for another machine of that processor, which
# then builds none; without a VARIANT nothing runs.
set -euo pipefail
libraries=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
tree=$PWD
cxx=${CXX:-c++}
scratch=${BUILT-}
if [[ -n $scratch ]]; then
  mkdir -p "$scratch"
else
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
export TEST_TMPDIR=$scratch
passed=0
failed=0

# What Bazel compiles tests with, but for the warnings, which it has had.
flags=(-std=c++20 -O1 -w -fno-builtin "-I$tree")
compile() {
  "$cxx" "${flags[@]}" "$@"
}

library() {
  local name=libhakmem-$1
  [[ $1 != release ]] || name=libhakmem
  echo "$libraries/$name.so"
}

# counted NAME COMMAND...: one line, and the output of what failed.
counted() {
  local name=$1
  shift
  if "$@" >"$scratch/log" 2>&1; then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    cat "$scratch/log"
    echo "FAILED: $name"
  fi
}

# --- The interfaces ----------------------------------------------------------
build_conformance() {
  local folder=allocator/tests/conformance source
  flags+=("-I$GOOGLETEST/include" "-I$GOOGLETEST")
  for source in "$GOOGLETEST"/src/gtest-all.cc "$GOOGLETEST"/src/gtest_main.cc "$folder"/support.cc "$folder"/*_test.cc; do
    case $source in
      */replaced_*) ;;
      *) echo "$source" ;;
    esac
  done >"$scratch/sources"
  mkdir "$scratch/objects"
  (cd "$scratch/objects" && sed "/^allocator/s|^|$tree/|" "$scratch/sources" | xargs -n1 "-P$(nproc)" "$cxx" "${flags[@]}" -c)
  "$cxx" "$scratch"/objects/*.o -o "$scratch/conformance_test_on_libc" -pthread "-Wl,-rpath,\$ORIGIN/$folder"
  mkdir -p "$scratch/$folder"
  compile -fPIC -shared "$folder/plugin.cc" -o "$scratch/$folder/libplugin.so"
}

# preloaded NAME VARIANT PROGRAM ARGS…: it fails where the loader does not take the library.
preloaded() {
  local name=$1 library
  library=$(library "$2")
  shift 2
  counted "$name" env -C "$scratch" "$tree/allocator/tests/conformance/preloaded.sh" "$library" "$@"
}

conformance() {
  local more=LEFT_OUT_$1
  preloaded "conformance, $1" "$1" conformance_test_on_libc "--gtest_filter=-${LEFT_OUT-}:${!more-}"
}

# --- Misuse --------------------------------------------------------------------
build_misuse() {
  local folder=allocator/tests/misuse
  cp "$folder"/*.cc "$scratch"
  printf '%s\n' "$folder"/*.cc | sed 's|.*/\(.*\)\.cc|\1|' >"$scratch/programs"
  xargs "-P$(nproc)" -I{} "$cxx" "${flags[@]}" "$folder/{}.cc" -o "$scratch/{}" -pthread -Wl,--as-needed <"$scratch/programs"
}

misuse() {
  local programs
  mapfile -t programs < <(sed "s|^|$scratch/|" "$scratch/programs")
  counted "misuse, $1" allocator/tests/misuse/run_misuse.py "$1" "$(library "$1")" "${programs[@]}"
}

# --- Stress ----------------------------------------------------------------------
build_stress() {
  local abseil
  read -ra abseil <<<"$ABSEIL"
  compile allocator/testing/stress_{main,lane,payload,workload}.cc -o "$scratch/stress" -pthread "${abseil[@]}"
}

stress() {
  local seed
  for seed in 1 2; do
    preloaded "stress, $1, seed $seed" "$1" stress \
      --ops=100000 --threads=4 "--seed=$seed" --max_mib=400 --life_ops=3000 --fork_every=0
  done
}

if [[ ! -e $scratch/built ]]; then
  build_conformance
  build_misuse
  [[ -z ${ABSEIL-} ]] || build_stress
  touch "$scratch/built"
fi
for variant; do
  conformance "$variant"
  misuse "$variant"
  [[ ! -e $scratch/stress ]] || stress "$variant"
done
echo "$passed passed, $failed failed"
((failed == 0))
