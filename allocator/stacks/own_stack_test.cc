#include "allocator/stacks/own_stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/compiler.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

std::vector<std::uintptr_t> Addresses(const CallStack& stack) {
  return {stack.addresses, stack.addresses + stack.count};
}

// Both ways from the same frame.
HAK_NOINLINE void Compare(OwnStack& own) {
  const void* const frame = __builtin_frame_address(0);
  CallStack safe;
  CaptureStack(frame, safe);
  CallStack fast;
  CaptureOwnStack(frame, own, fast);
  EXPECT_EQ(Addresses(fast), Addresses(safe));
  EXPECT_GE(fast.count, 1U);
}

HAK_NOINLINE void CompareDeep(OwnStack& own, int depth) {
  volatile char room[3000] = {};
  room[0] = 1;
  if (depth > 0) CompareDeep(own, depth - 1);
  Compare(own);
  EXPECT_EQ(room[0], 1);
}

TEST(OwnStackTest, SaysTheSameAsTheSafeWalk) {
  OwnStack own;
  Compare(own);
  CompareDeep(own, 0);
  CompareDeep(own, 100);
  Compare(own);
}

TEST(OwnStackTest, OnOtherThreadsToo) {
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      OwnStack own;
      Compare(own);
      CompareDeep(own, 30);
    }).join();
  }
}

ucontext_t outside;
ucontext_t inside;
OwnStack* own_inside = nullptr;

void OnCoroutine() {
  Compare(*own_inside);
  // Between this stack and the first thread's descriptor others' memory lies,
  // which may go. Where no frame is read directly, nothing is known at all.
  EXPECT_TRUE(own_inside->unknown || own_inside->end == 0);
  swapcontext(&inside, &outside);
}

TEST(OwnStackTest, OnACoroutinesStack) {
  constexpr std::size_t kBytes = std::size_t{256} * 1024;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const bool known_before : {true, false}) {
    OwnStack own;
    if (known_before) Compare(own);
    own_inside = &own;
    ASSERT_EQ(getcontext(&inside), 0);
    inside.uc_stack.ss_sp = memory;
    inside.uc_stack.ss_size = kBytes;
    inside.uc_link = nullptr;
    makecontext(&inside, OnCoroutine, 0);
    ASSERT_EQ(swapcontext(&outside, &inside), 0);
    Compare(own);
  }
  munmap(memory, kBytes);
}

// A frame pointer register that holds anything.
TEST(OwnStackTest, WildFramePointersEndTheWalk) {
  OwnStack own;
  Compare(own);
  struct {
    std::uintptr_t caller;
    std::uintptr_t return_address;
  } frame = {0, 0x400000};
  const auto here = reinterpret_cast<std::uintptr_t>(&frame);
  for (const std::uintptr_t wild :
       {std::uintptr_t{0}, std::uintptr_t{8}, here, here - 16, here + 1,
        here + (std::uintptr_t{1} << 21), ~std::uintptr_t{7},
        own.end - sizeof(frame) + 8, own.end + 8}) {
    frame.caller = wild;
    CallStack stack;
    CaptureOwnStack(&frame, own, stack);
    EXPECT_GE(stack.count, 1U) << wild;
    EXPECT_EQ(stack.addresses[0], 0x400000U);
  }
}

}  // namespace
}  // namespace hakmem
