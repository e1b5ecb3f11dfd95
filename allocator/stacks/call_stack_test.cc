#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "allocator/base/compiler.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/unwinder.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

struct Record {
  std::uintptr_t caller;
  std::uintptr_t return_address;
};

std::uintptr_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Has a frame pointer, whatever the flags; what it does after the call keeps
// that from being a jump.
HAK_NOINLINE int Innermost(CallStack& stack) {
  CaptureStack(__builtin_frame_address(0), stack);
  return static_cast<int>(stack.count) + 1;
}
HAK_NOINLINE int Middle(CallStack& stack, std::uintptr_t& own) {
  own = AddressOf(__builtin_return_address(0));
  const void* volatile frame = __builtin_frame_address(0);
  return Innermost(stack) + (frame != nullptr);
}
HAK_NOINLINE int Outer(CallStack& stack, std::uintptr_t& middle,
                       std::uintptr_t& own) {
  own = AddressOf(__builtin_return_address(0));
  const void* volatile frame = __builtin_frame_address(0);
  return Middle(stack, middle) + (frame != nullptr);
}

bool FindsTheCallers(unsigned at_least) {
  CallStack stack;
  std::uintptr_t middle = 0;
  std::uintptr_t outer = 0;
  errno = 1234;
  Outer(stack, middle, outer);
  if (errno != 1234 || stack.count < at_least) return false;
  if (stack.count > 1 && stack.addresses[1] != middle) return false;
  return stack.count <= 2 || stack.addresses[2] == outer;
}

TEST(CaptureStackTest, FindsTheCallersInnermostFirst) {
  EXPECT_TRUE(FindsTheCallers(3));
}

TEST(CaptureStackTest, AsksForNoCopies) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv, SYS_openat})) _exit(77);
        _exit(FindsTheCallers(3) ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

// Walks from a record that the test made up.
unsigned CountFrom(const Record* records, CallStack& stack) {
  CaptureStack(records, stack);
  return stack.count;
}

TEST(CaptureStackTest, StopsAfterItsMaximum) {
  Record records[2 * CallStack::kMaxFrames];
  for (std::size_t i = 0; i < std::size(records); ++i) {
    records[i] = {AddressOf(records + i + 1), 0x10000 + i};
  }
  CallStack stack;
  EXPECT_EQ(CountFrom(records, stack), CallStack::kMaxFrames);
  for (std::size_t i = 0; i < CallStack::kMaxFrames; ++i) {
    EXPECT_EQ(stack.addresses[i], 0x10000 + i);
  }
}

// Records that lie across a page's end, at the end of what is mapped, and far
// from each other.
TEST(CaptureStackAtTest, FollowsRecordsWhereverTheyLie) {
  const auto page = static_cast<std::size_t>(getpagesize());
  const std::size_t bytes = 4 * page;
  char* const pages =
      static_cast<char*>(mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  munmap(pages + bytes, page);
  const std::size_t places[] = {0,         16,
                                992,       1008,
                                1024,      2048,
                                page - 24, page - 8,
                                page + 16, 3 * page - 16,
                                3 * page,  bytes - sizeof(Record)};
  const std::size_t count = std::size(places);
  for (std::size_t i = 0; i < count; ++i) {
    const Record record = {i + 1 < count ? AddressOf(pages + places[i + 1]) : 0,
                           0x10000 + i};
    std::memcpy(pages + places[i], &record, sizeof(record));
  }
  CallStack stack;
  CaptureStackAt({.instruction = 0x20000, .frame = AddressOf(pages)}, stack);
  ASSERT_EQ(stack.count, count + 1);
  EXPECT_EQ(stack.addresses[0], 0x20000u);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(stack.addresses[i + 1], 0x10000 + i) << i;
  }
  // On a stack that is not this thread's the first page is known.
  CaptureStack(pages, stack);
  EXPECT_EQ(stack.count, 7u);
  munmap(pages, bytes);
}

TEST(CaptureStackTest, WildFramePointersEndTheWalk) {
  const auto page = static_cast<std::size_t>(getpagesize());
  // Reserved, so that nothing else comes to lie where the records point.
  constexpr std::size_t kReservedBytes = std::size_t{4} << 20;
  char* const pages = static_cast<char*>(mmap(
      nullptr, kReservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  ASSERT_EQ(mprotect(pages, page, PROT_READ | PROT_WRITE), 0);
  auto* const last = reinterpret_cast<Record*>(pages + page - sizeof(Record));
  CallStack stack;
  const std::uintptr_t here = AddressOf(last);
  for (const std::uintptr_t wild :
       {std::uintptr_t{0}, std::uintptr_t{1}, here - sizeof(Record), here,
        here + 1, here + 8, here + 16, here + page, here + (1 << 20),
        here + (1 << 21), ~std::uintptr_t{0} - 15, std::uintptr_t{1} << 63}) {
    *last = {wild, 0x10000};
    EXPECT_EQ(CountFrom(last, stack), 1u) << std::hex << wild;
  }
  munmap(pages, kReservedBytes);
}

TEST(CaptureStackTest, AnAddressThatIsNoCodeEndsTheWalk) {
  Record records[3] = {{0, 0x10000}, {0, 0}, {0, 0x10000}};
  records[0].caller = AddressOf(records + 1);
  records[1].caller = AddressOf(records + 2);
  CallStack stack;
  EXPECT_EQ(CountFrom(records, stack), 1u);
}

}  // namespace
}  // namespace hakmem
