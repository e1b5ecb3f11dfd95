// What is found of the stack when a signal has come.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "allocator/base/compiler.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/test_death.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/unwinder.h"

namespace hakmem {
namespace {

class FaultStackTest : public DeathTest {};

std::uintptr_t caller = 0;

HAK_NOINLINE int WriteFramed(void (*write)()) {
  caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const void* volatile frame = __builtin_frame_address(0);
  write();
  return frame != nullptr ? 1 : 0;
}

FaultVerdict SayWhetherTheCallerIsFound(const Fault& fault) {
  CallStack stack;
  CaptureStackAt(fault.place, stack);
  bool found = false;
  for (unsigned i = 0; i < stack.count; ++i) {
    found = found || stack.addresses[i] == caller;
  }
  Say(stack.addresses[0] == fault.place.instruction && found ? "found\n"
                                                             : "lost\n");
  return FaultVerdict::kExplained;
}

TEST_F(FaultStackTest, TheCallersOfTheAccessAreFound) {
  for (void (*const access)() :
       {static_cast<void (*)()>(&WriteForbidden), static_cast<void (*)()>([] {
          void* (*volatile fill)(void*, int, std::size_t) = &std::memset;
          fill(Forbidden(), 1, 100);
        })}) {
    const Death death = DeathOf([access] {
      AddFaultListener(&SayWhetherTheCallerIsFound, kFaults,
                       OtherHandlers::kStandBefore);
      std::exit(WriteFramed(access));
    });
    EXPECT_EQ(death.said, "found\n");
  }
}

// As on ARM64, where a call leaves its return address in a register.
TEST_F(FaultStackTest, ACallerThatOnlyARegisterTellsOf) {
  const auto begin = [](auto* function) {
    return reinterpret_cast<std::uintptr_t>(function);
  };
  const std::uintptr_t own = begin(&WriteFramed) + 1;
  const std::uintptr_t other = begin(&SayWhetherTheCallerIsFound) + 8;
  FrameRecord record = {.caller = 0, .return_address = 0};
  const auto at = [&](std::uintptr_t link) {
    CallStack stack;
    CaptureStackAt({.instruction = own, .frame = begin(&record), .link = link},
                   stack);
    return std::vector<std::uintptr_t>(stack.addresses,
                                       stack.addresses + stack.count);
  };
  EXPECT_EQ(at(other), (std::vector{own, other}));
  // From an earlier call that the function has made.
  EXPECT_EQ(at(own + 2), std::vector{own});
  record.return_address = other;
  EXPECT_EQ(at(other), (std::vector{own, other}));
}

TEST_F(FaultStackTest, AWildFramePointerLeavesTheInstruction) {
  CallStack stack;
  CaptureStackAt({.instruction = 0x10000,
                  .frame = reinterpret_cast<std::uintptr_t>(Forbidden()),
                  .stack_pointer = 8},
                 stack);
  ASSERT_EQ(stack.count, 1u);
  EXPECT_EQ(stack.addresses[0], 0x10000u);
  CaptureStackAt({}, stack);
  EXPECT_EQ(stack.count, 0u);
}

}  // namespace
}  // namespace hakmem
