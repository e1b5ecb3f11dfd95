#!/bin/bash
# Programs on what was built, preloaded and linked; each says which malloc it has.
# usage: check.sh BUILD_DIRECTORY VARIANT...
set -euo pipefail
source=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# LD_PRELOAD and LD_LIBRARY_PATH are lists: a folder with a space or a colon in its name would be two.
build=$scratch/build
ln -s "$(realpath "$1")" "$build"
shift
# A command with arguments, as make has it.
read -ra cc <<<"${CC:-cc}"

fail() {
  echo "check: $*" >&2
  exit 1
}

# on_hakmem VARIANT COMMAND...: its statistics say that it ran on hakmem.
on_hakmem() {
  local variant=$1
  shift
  HAKMEM_STATS="$scratch/statistics" "$@" >/dev/null || fail "$variant: $* failed"
  grep -q "\"variant\": *\"$variant\"" "$scratch/statistics" || fail "$variant: $* did not run on it"
  rm "$scratch/statistics"
}

# as_of VERSION NAME: a program linked with the library of that version, of which
# the symbols are kept and are enough for the linker.
as_of() {
  local abi=$source/tests/abi
  sed -n 's/^ *\(hakmem_[a-z_]*\);$/void \1(void);void \1(void) {}/p' "$abi/exports_$1.map" >"$scratch/old.c"
  "${cc[@]}" -shared -fPIC "$scratch/old.c" -o "$scratch/lib$2.so.0" -Wl,-soname="lib$2.so.0" \
    -Wl,--version-script="$abi/exports_$1.map"
  "${cc[@]}" "$abi/program_$1.c" "$scratch/lib$2.so.0" -o "$scratch/program_$1"
  rm "$scratch/lib$2.so.0"
}

echo 'int main(void) { void* volatile block = malloc(100); free(block); return block == NULL; }' |
  "${cc[@]}" -x c -include stdlib.h - -o "$scratch/plain"
readelf=$("${cc[@]}" -print-prog-name=readelf)  # where the compiler is another system's, not the host's
for variant in "$@"; do
  name=hakmem
  [[ $variant == release ]] || name=hakmem-$variant
  "$readelf" -dW "$build/lib$name.so" >"$scratch/dynamic"
  needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$scratch/dynamic" | grep -Ev '^(libc\.|ld-(linux|musl))' || true)
  [[ -z $needed ]] || fail "$variant: it needs $needed beside libc"
  # Each library lets the processor check its returns and branches. On ARM64 a part of the shared one is the compiler's,
  # which may not.
  "$readelf" -hn "$build/lib$name.a" >"$scratch/notes"
  "$readelf" -n "$build/lib$name.so" >>"$scratch/notes"
  case $(sed -n 's/^ *Machine: *//p' "$scratch/notes") in
    *X86-64) wanted=2 ;;
    AArch64) wanted=1 ;;
    *) wanted=0 ;;
  esac
  found=$(grep -cE 'x86 feature: IBT, SHSTK$|AArch64 feature: BTI, PAC$' "$scratch/notes") || true
  ((found >= wanted)) || fail "$variant: a library without a note of checked returns and branches"
  on_hakmem "$variant" env LD_PRELOAD="$build/lib$name.so" "$scratch/plain"
  "${cc[@]}" -I"$source" "$source/tests/program.c" -o "$scratch/shared" \
    -Wl,--no-as-needed -L"$build" -l"$name" -Wl,-rpath,"$build"
  on_hakmem "$variant" "$scratch/shared"
  "${cc[@]}" -I"$source" "$source/tests/program.c" -o "$scratch/static" "$build/lib$name.a" -pthread
  on_hakmem "$variant" "$scratch/static"
  as_of 0_1 "$name"
  on_hakmem "$variant" env LD_BIND_NOW=1 LD_LIBRARY_PATH="$build" "$scratch/program_0_1"
  for program in shared static; do
    # Braces, or bash says on this script's standard error that it has aborted.
    if { "$scratch/$program" twice; } 2>"$scratch/message"; then fail "$variant: a double free passed"; fi
    grep -q '^hakmem: fatal: double free' "$scratch/message" || fail "$variant: $(cat "$scratch/message")"
  done
done
echo "check: passed: $*"
