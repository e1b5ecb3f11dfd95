// A program that replaces the forms of delete with a size alone, by ones that
// call free, and some nothrow forms of new, by ones that call malloc: no
// mismatch, as of one that replaces the basic forms.

#include <cstdlib>
#include <new>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

void operator delete(void* pointer, std::size_t) noexcept { free(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { free(pointer); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return malloc(size);
}

namespace hakmem {
namespace {

TEST(ReplacedSizedDelete, FreesWhatNewAllocates) {
  for (const std::size_t size : kOfEachRoute) {
    ::operator delete(Opaque(::operator new(size)), size);
    ::operator delete[](Opaque(::operator new[](size)), size);
  }
}

TEST(ReplacedNothrowNew, IsFreedByDelete) {
  for (const std::size_t size : kOfEachRoute) {
    ::operator delete(Opaque(::operator new(size, std::nothrow)));
  }
}

}  // namespace
}  // namespace hakmem
