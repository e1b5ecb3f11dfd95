// The C++ operators: every form, the new-handler, std::bad_alloc.

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kImpossible =
    std::numeric_limits<std::size_t>::max() / 2 + 1;
constexpr std::size_t kSizes[] = {0, 1, 16, 100, 1024, 5000, 70000, 3000000};
constexpr std::size_t kAlignments[] = {1, 16, 32, 64, 4096, 1 << 20};

int g_handler_calls = 0;

// Restores the handler at the end of a test.
class HandlerScope {
 public:
  explicit HandlerScope(std::new_handler handler)
      : before_(std::set_new_handler(handler)) {
    g_handler_calls = 0;
  }
  ~HandlerScope() { std::set_new_handler(before_); }

 private:
  std::new_handler before_;
};

void GiveUpAtTheThirdCall() {
  if (++g_handler_calls == 3) std::set_new_handler(nullptr);
}

struct HandlersOwn {};
void ThrowOwn() {
  ++g_handler_calls;
  throw HandlersOwn();
}

void ThrowBadAllocOfHandler() {
  ++g_handler_calls;
  throw std::bad_alloc();
}

TEST(Operators, PlainAndArray) {
  for (const std::size_t size : kSizes) {
    void* const one = ::operator new(size);
    void* const array = ::operator new[](size);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(array, nullptr);
    EXPECT_NE(one, array);
    EXPECT_TRUE(IsAlignedTo(one, __STDCPP_DEFAULT_NEW_ALIGNMENT__));
    EXPECT_GE(malloc_usable_size(one), size);
    FillBlock(one, size, 1);
    FillBlock(array, size, 2);
    EXPECT_TRUE(BlockHolds(one, size, 1));
    ::operator delete(one);
    ::operator delete[](array);
  }
}

TEST(Operators, NothrowForms) {
  for (const std::size_t size : kSizes) {
    void* const one = ::operator new(size, std::nothrow);
    void* const array = ::operator new[](size, std::nothrow);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(array, nullptr);
    ::operator delete(one, std::nothrow);
    ::operator delete[](array, std::nothrow);
  }
}

TEST(Operators, SizedDelete) {
  for (std::size_t size = 0; size < 300000; size += 1 + size / 32) {
    ::operator delete(::operator new(size), size);
    ::operator delete[](::operator new[](size), size);
  }
}

TEST(Operators, AlignedForms) {
  for (const std::size_t alignment_bytes : kAlignments) {
    const auto alignment = static_cast<std::align_val_t>(alignment_bytes);
    for (const std::size_t size : kSizes) {
      void* const one = ::operator new(size, alignment);
      EXPECT_TRUE(IsAlignedTo(one, alignment_bytes));
      FillBlock(one, size, 1);
      ::operator delete(one, alignment);
      void* const array = ::operator new[](size, alignment);
      EXPECT_TRUE(IsAlignedTo(array, alignment_bytes));
      ::operator delete[](array, alignment);
      ::operator delete(::operator new(size, alignment), size, alignment);
      ::operator delete[](::operator new[](size, alignment), size, alignment);
      void* const nothrow = ::operator new(size, alignment, std::nothrow);
      EXPECT_TRUE(IsAlignedTo(nothrow, alignment_bytes));
      ::operator delete(nothrow, alignment, std::nothrow);
      void* const nothrow_array =
          ::operator new[](size, alignment, std::nothrow);
      EXPECT_TRUE(IsAlignedTo(nothrow_array, alignment_bytes));
      ::operator delete[](nothrow_array, alignment, std::nothrow);
    }
  }
}

TEST(Operators, DeleteOfNullDoesNothing) {
  void* const null = Opaque<void*>(nullptr);
  ::operator delete(null);
  ::operator delete[](null);
  ::operator delete(null, 100);
  ::operator delete[](null, 100);
  ::operator delete(null, std::align_val_t{64});
  ::operator delete(null, 100, std::align_val_t{64});
  ::operator delete(null, std::nothrow);
}

TEST(Operators, ThrowBadAllocWithoutAHandler) {
  HandlerScope scope(nullptr);
  EXPECT_THROW((void)::operator new(Opaque(kImpossible)), std::bad_alloc);
  EXPECT_THROW((void)::operator new[](Opaque(kImpossible)), std::bad_alloc);
  EXPECT_THROW((void)::operator new(Opaque(kImpossible), std::align_val_t{64}),
               std::bad_alloc);
  EXPECT_THROW(
      (void)::operator new[](Opaque(kImpossible), std::align_val_t{64}),
      std::bad_alloc);
}

TEST(Operators, NothrowGivesNullWithoutAHandler) {
  HandlerScope scope(nullptr);
  EXPECT_EQ(::operator new(Opaque(kImpossible), std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](Opaque(kImpossible), std::nothrow), nullptr);
  EXPECT_EQ(
      ::operator new(Opaque(kImpossible), std::align_val_t{64}, std::nothrow),
      nullptr);
  EXPECT_EQ(
      ::operator new[](Opaque(kImpossible), std::align_val_t{64}, std::nothrow),
      nullptr);
}

TEST(Operators, HandlerIsCalledUntilItGivesUp) {
  {
    HandlerScope scope(&GiveUpAtTheThirdCall);
    EXPECT_THROW((void)::operator new(Opaque(kImpossible)), std::bad_alloc);
    EXPECT_EQ(g_handler_calls, 3);
  }
  HandlerScope scope(&GiveUpAtTheThirdCall);
  EXPECT_EQ(::operator new(Opaque(kImpossible), std::nothrow), nullptr);
  EXPECT_EQ(g_handler_calls, 3);
}

TEST(Operators, WhatTheHandlerThrowsPassesThrough) {
  HandlerScope scope(&ThrowOwn);
  EXPECT_THROW((void)::operator new(Opaque(kImpossible)), HandlersOwn);
  EXPECT_THROW((void)::operator new[](Opaque(kImpossible)), HandlersOwn);
  EXPECT_THROW((void)::operator new(Opaque(kImpossible), std::align_val_t{64}),
               HandlersOwn);
  EXPECT_EQ(g_handler_calls, 3);
}

TEST(Operators, NothrowCatchesWhatTheHandlerThrows) {
  HandlerScope scope(&ThrowBadAllocOfHandler);
  EXPECT_EQ(::operator new(Opaque(kImpossible), std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](Opaque(kImpossible), std::nothrow), nullptr);
  EXPECT_EQ(
      ::operator new(Opaque(kImpossible), std::align_val_t{64}, std::nothrow),
      nullptr);
  EXPECT_EQ(g_handler_calls, 3);
}

// Memory that the handler gives back is found by the next try: the limit is
// on the process's address space, in a child.
TEST(Operators, DISABLED_HandlerMakesRoom) {
  static void* hoard = nullptr;
  HandlerScope scope([] {
    ++g_handler_calls;
    free(hoard);
    hoard = nullptr;
  });
  hoard = malloc(700 * kTestMiB);
  ASSERT_NE(hoard, nullptr);
  void* const block = ::operator new(Opaque(600 * kTestMiB));
  EXPECT_EQ(g_handler_calls, 1);
  ::operator delete(block);
}

TEST(Operators, BadAlignmentThrows) {
  HandlerScope scope(nullptr);
  EXPECT_THROW((void)::operator new(16, Opaque(std::align_val_t{48})),
               std::bad_alloc);
  EXPECT_EQ(::operator new(16, Opaque(std::align_val_t{48}), std::nothrow),
            nullptr);
}

}  // namespace
}  // namespace hakmem
