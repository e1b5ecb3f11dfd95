// A program that replaces only the basic operators: the standard says that all
// other forms go through them. Its blocks bear a prefix, so that a block that
// passes hakmem by, or passes the program by, is noticed.

#include <cstdlib>
#include <new>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace {

constexpr std::size_t kPrefixBytes = 64;
constexpr unsigned long kMark = 0x6d61726b6d61726bUL;

// Atomic: googletest allocates on threads of its own.
std::size_t g_live = 0;

void* Mark(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  *static_cast<unsigned long*>(block) = kMark;
  __atomic_add_fetch(&g_live, 1, __ATOMIC_RELAXED);
  return static_cast<char*>(block) + kPrefixBytes;
}

void FreeMarked(void* pointer) {
  if (pointer == nullptr) return;
  char* const block = static_cast<char*>(pointer) - kPrefixBytes;
  if (*reinterpret_cast<unsigned long*>(block) != kMark) abort();
  *reinterpret_cast<unsigned long*>(block) = 0;
  __atomic_sub_fetch(&g_live, 1, __ATOMIC_RELAXED);
  free(block);
}

}  // namespace

void* operator new(std::size_t size) {
  return Mark(malloc(size + kPrefixBytes));
}
void operator delete(void* pointer) noexcept { FreeMarked(pointer); }
void* operator new(std::size_t size, std::align_val_t) {
  return Mark(aligned_alloc(kPrefixBytes, size + kPrefixBytes));
}
void operator delete(void* pointer, std::align_val_t) noexcept {
  FreeMarked(pointer);
}

namespace hakmem {
namespace {

constexpr std::align_val_t kAlignment{64};

// `block` is the program's own.
void ExpectOwn(void* block, std::size_t live_before) {
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(g_live, live_before + 1);
  EXPECT_EQ(*reinterpret_cast<unsigned long*>(static_cast<char*>(block) -
                                              kPrefixBytes),
            kMark);
}

template <typename New, typename Delete>
void Check(New allocate, Delete release) {
  const std::size_t before = g_live;
  void* const block = Opaque(allocate());
  ExpectOwn(block, before);
  release(block);
  EXPECT_EQ(g_live, before);
}

TEST(ReplacedOperators, AllFormsGoThroughTheProgramsOwn) {
  Check([] { return ::operator new(100); },
        [](void* p) { ::operator delete(p); });
  Check([] { return ::operator new(100); },
        [](void* p) { ::operator delete(p, 100); });
  Check([] { return ::operator new[](100); },
        [](void* p) { ::operator delete[](p); });
  Check([] { return ::operator new[](100); },
        [](void* p) { ::operator delete[](p, 100); });
  Check([] { return ::operator new(100, std::nothrow); },
        [](void* p) { ::operator delete(p, std::nothrow); });
  Check([] { return ::operator new[](100, std::nothrow); },
        [](void* p) { ::operator delete[](p, std::nothrow); });
}

TEST(ReplacedOperators, AllAlignedFormsGoThroughTheProgramsOwn) {
  Check([] { return ::operator new(100, kAlignment); },
        [](void* p) { ::operator delete(p, kAlignment); });
  Check([] { return ::operator new(100, kAlignment); },
        [](void* p) { ::operator delete(p, 100, kAlignment); });
  Check([] { return ::operator new[](100, kAlignment); },
        [](void* p) { ::operator delete[](p, kAlignment); });
  Check([] { return ::operator new[](100, kAlignment); },
        [](void* p) { ::operator delete[](p, 100, kAlignment); });
  Check([] { return ::operator new(100, kAlignment, std::nothrow); },
        [](void* p) { ::operator delete(p, kAlignment, std::nothrow); });
  Check([] { return ::operator new[](100, kAlignment, std::nothrow); },
        [](void* p) { ::operator delete[](p, kAlignment, std::nothrow); });
}

TEST(ReplacedOperators, NothrowCatchesWhatTheProgramsOwnThrows) {
  EXPECT_EQ(::operator new(Opaque(~std::size_t{0} / 2), std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](Opaque(~std::size_t{0} / 2), std::nothrow),
            nullptr);
}

}  // namespace
}  // namespace hakmem
