// A program that is linked with its C++ runtime's archive (-static-libstdc++),
// and uses nothing that would bring std::__throw_bad_alloc with it: operator
// new throws all the same.

#include <cstddef>
#include <cstdio>
#include <limits>
#include <new>

#include "allocator/tests/opaque.h"

extern "C" __attribute__((weak)) void ThrowBadAlloc() __asm__(
    "_ZSt17__throw_bad_allocv");

namespace {

using hakmem::Opaque;

constexpr std::size_t kTooMuch = std::numeric_limits<std::size_t>::max() / 2;

template <typename New>
bool Throws(New allocate) {
  try {
    Opaque(allocate());
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace

int main() {
  if (&ThrowBadAlloc != nullptr) {
    fputs("std::__throw_bad_alloc is there; this tests nothing\n", stderr);
    return 2;
  }
  constexpr auto kAlignment = std::align_val_t{64};
  const bool held =
      Throws([] { return ::operator new(Opaque(kTooMuch)); }) &&
      Throws([] { return ::operator new[](Opaque(kTooMuch)); }) &&
      Throws([] { return ::operator new(Opaque(kTooMuch), kAlignment); }) &&
      Throws([] { return ::operator new[](Opaque(kTooMuch), kAlignment); }) &&
      ::operator new(Opaque(kTooMuch), std::nothrow) == nullptr;
  return held ? 0 : 1;
}
