#!/bin/bash
# libFuzzer of clang 19.1.7 (Debian, x86-64): -malloc_limit_mb does nothing in a fuzzer
# without a sanitizer that has an allocator.
#
# A good guess: the option is libFuzzer's own, and its help says that the fuzzer exits
# if the target allocates this much with one call, so it does. Seen: libFuzzer learns of
# allocations by hooks of AddressSanitizer's runtime and those alike. Without one of
# these the option is taken, no allocation is looked at, and nothing says so.
# UndefinedBehaviorSanitizer does not help. -rss_limit_mb remains, and it sees memory
# that was touched, once a second.
#
# Seen: runs with -malloc_limit_mb=64 of a target that allocates 256 MiB: with
# fuzzer,address "out-of-memory (malloc(268435456))", with fuzzer "Done 10 runs", with
# fuzzer,undefined "Done 10 runs".
#
# Needs clang++-19 with libclang-rt-19-dev. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >target.cc <<'CC'
#include <cstddef>
#include <cstdint>
#include <cstdlib>

static void* volatile kept;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) {
  kept = std::malloc(256 << 20);
  std::free(kept);
  return 0;
}
CC
seen=
for sanitizers in fuzzer,address fuzzer fuzzer,undefined; do
  clang++-19 -O0 -fsanitize=$sanitizers -o fuzz target.cc
  ./fuzz -runs=10 -malloc_limit_mb=64 >log 2>&1 || true
  said=$(grep -o -E 'out-of-memory \(malloc\(268435456\)|Done 10 runs' log)
  echo "$sanitizers: $said"
  seen+="$said;"
done
[[ $seen == "out-of-memory (malloc(268435456);Done 10 runs;Done 10 runs;" ]] ||
  { echo "not what was seen"; exit 1; }
