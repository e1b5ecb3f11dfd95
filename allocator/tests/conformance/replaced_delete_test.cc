// A program that replaces operator delete alone, by one that calls free: legal,
// because what `new` allocates is malloc's where nobody says otherwise, and no
// mismatch in the variants that know which family a block came from.

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace {

std::size_t g_deleted = 0;

}  // namespace

void operator delete(void* pointer) noexcept {
  // Atomic: googletest frees on threads of its own.
  __atomic_add_fetch(&g_deleted, 1, __ATOMIC_RELAXED);
  free(pointer);
}

namespace hakmem {
namespace {

template <typename Delete>
void ExpectDeletedByTheProgram(void* block, Delete release) {
  ASSERT_NE(block, nullptr);
  const std::size_t before = g_deleted;
  release(Opaque(block));
  EXPECT_EQ(g_deleted, before + 1);
}

TEST(ReplacedDelete, FreesWhatNewAllocates) {
  for (const std::size_t size : kOfEachRoute) {
    ExpectDeletedByTheProgram(::operator new(size),
                              [](void* p) { ::operator delete(p); });
    ExpectDeletedByTheProgram(::operator new(size),
                              [=](void* p) { ::operator delete(p, size); });
    ExpectDeletedByTheProgram(::operator new[](size),
                              [](void* p) { ::operator delete[](p); });
    ExpectDeletedByTheProgram(::operator new[](size),
                              [=](void* p) { ::operator delete[](p, size); });
    ExpectDeletedByTheProgram(::operator new(size, std::nothrow),
                              [](void* p) { ::operator delete(p); });
  }
}

TEST(ReplacedDelete, ServesTheLibrary) {
  std::vector<std::unique_ptr<std::string>> texts;
  for (std::size_t length = 1; length < 100'000; length *= 3) {
    texts.push_back(std::make_unique<std::string>(length, 'x'));
  }
  const std::size_t before = g_deleted;
  texts.clear();
  EXPECT_GT(g_deleted, before + 10);
}

TEST(ReplacedDelete, LeavesAlignedFormsAsTheyAre) {
  constexpr std::align_val_t kAlignment{64};
  ::operator delete(::operator new(100, kAlignment), kAlignment);
  ::operator delete[](::operator new[](100, kAlignment), kAlignment);
}

}  // namespace
}  // namespace hakmem
