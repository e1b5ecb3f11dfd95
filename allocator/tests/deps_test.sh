#!/bin/bash
# deps_test.sh LIBRARY [--bytes]: at run time the library needs libc and nothing
# else, and it can be loaded anywhere. --bytes: its file is small.
set -euo pipefail
export LC_ALL=C
library=$1
failures=0
fail() {
  echo "$library: $*" >&2
  failures=$((failures + 1))
}

dynamic=$(readelf --dynamic --wide "$library")
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
grep -qx 'libc\.so\.6' <<<"$needed" || fail "does not need libc.so.6; is this the library?"
others=$(grep -Evx 'libc\.so\.6|ld-linux-(x86-64\.so\.2|aarch64\.so\.1)' <<<"$needed" || true)
[[ -z $others ]] || fail "needs $others"
unresolved=$(ldd "$library" | grep 'not found' || true)
[[ -z $unresolved ]] || fail "unresolved: $unresolved"
! grep -q TEXTREL <<<"$dynamic" || fail "has relocations in its code"
grep -q 'BIND_NOW\|FLAGS.*NOW' <<<"$dynamic" || fail "binds lazily; the loader would run inside malloc"
soname=$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<<"$dynamic")
[[ $soname == "$(basename "$library")" ]] || fail "is called $soname inside"

segments=$(readelf --segments --wide "$library")
grep -Eq 'GNU_STACK .* RW +0' <<<"$segments" || fail "wants an executable stack"
# A process has the processor check its returns and branches if each of its libraries says that it may.
machine=$(readelf --file-header "$library" | sed -n 's/^ *Machine: *//p')
[[ $machine != *X86-64 ]] || grep -q 'x86 feature: IBT, SHSTK' <<<"$(readelf --notes "$library")" ||
  fail "has no note of checked returns and branches"
# A library loaded by dlopen has to fit into the C library's surplus for
# initial-exec thread-local storage, 512 bytes by default, shared by all.
tls_bytes=$(awk '$1 == "TLS" { print $6 }' <<<"$segments")
(( ${tls_bytes:-0} <= 128 )) || fail "has $((tls_bytes)) bytes of thread-local storage"

# What is zero at first takes no room in the file, unless it is a part of
# something that is not.
data_bytes=$(size --format=sysv "$library" | awk '$1 == ".data" { print $2 }')
(( data_bytes <= 80 * 1024 )) || fail "stores $data_bytes bytes of data"
# What each fork's child writes lies side by side (HAK_AT_FORK).
fork_bytes=$(size --format=sysv "$library" | awk '$1 == ".hakmem.fork" { print $2 }')
(( ${fork_bytes:-0} >= 64 && fork_bytes <= 512 )) || fail "has ${fork_bytes:-no} bytes of what forks write to"
# So the file is small, and little is relocated at start. (The figures are those
# of clang for x86-64.)
compilers=$(readelf --string-dump=.comment "$library")
if [[ ${2-} == --bytes && $machine == *X86-64 && $compilers == *clang* ]]; then
  case $library in
    *-hardened.so) most=(499 449) ;;
    *-debug.so) most=(509 452) ;;
    *-tracing.so) most=(386 400) ;;
    *) most=(359 389) ;;
  esac
  stripped=$(mktemp)
  trap 'rm -f "$stripped"' EXIT
  strip --strip-all -o "$stripped" "$library"
  bytes=$(stat --format=%s "$stripped")
  relocations=$(readelf --relocs --wide "$library" | grep -c R_X86_64_RELATIVE)
  (( bytes <= most[0] * 1024 )) || fail "takes $bytes bytes once stripped, more than ${most[0]} KiB"
  (( relocations <= most[1] )) || fail "has $relocations relocations of its own data, more than ${most[1]}"
fi

# Everything that is undefined comes from libc, or may be missing.
undefined=$(nm --dynamic --undefined-only "$library" | awk '$1 == "U" { print $2 }' | grep -v '@GLIBC_' || true)
[[ -z $undefined ]] || fail "needs symbols that libc does not have: $undefined"
all_defined=$(nm --defined-only --demangle --format=posix "$library")
foreign=$(grep -E '^(absl::|testing::|std::.*basic_string<|__gxx_personality_v0|__cxa_throw|__cxa_allocate_exception)' <<<"$all_defined" || true)
[[ -z $foreign ]] || fail "contains code of a C++ library: $foreign"

(( failures == 0 )) || exit 1
