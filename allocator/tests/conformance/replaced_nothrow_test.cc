// A program that replaces the aligned nothrow form of new alone, by one that
// calls aligned_alloc: no mismatch, as of one that replaces the basic forms.

#include <cstdlib>
#include <new>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

void* operator new(std::size_t size, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  return aligned_alloc(static_cast<std::size_t>(alignment), size);
}

namespace hakmem {
namespace {

TEST(ReplacedAlignedNothrowNew, IsFreedByDelete) {
  constexpr auto kAlignment = std::align_val_t{64};
  for (const std::size_t size : kOfEachRoute) {
    ::operator delete(Opaque(::operator new(size, kAlignment, std::nothrow)),
                      kAlignment);
  }
}

}  // namespace
}  // namespace hakmem
