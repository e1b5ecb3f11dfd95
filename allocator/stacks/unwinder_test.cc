#include "allocator/stacks/unwinder.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/process/fault_hook.h"
#include "allocator/stacks/modules.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Whether some address of the stack lies in [function, function + 400).
template <typename Function>
bool Has(const CallStack& stack, Function* function) {
  const auto begin = reinterpret_cast<std::uintptr_t>(function);
  return std::any_of(
      stack.addresses, stack.addresses + stack.count,
      [=](std::uintptr_t address) { return address - begin < 400; });
}

// Leaves the frame pointer no use: it is clobbered like any register.
__attribute__((noinline)) void Inner(CallStack& stack) {
  Unwind(stack);
  __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void Middle(CallStack& stack) {
  char array[200];
  std::memset(array, 1, sizeof(array));
  __asm__ volatile("" ::"r"(array) : "rbx", "r12", "r13", "r14", "memory");
  Inner(stack);
  __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void Outer(CallStack& stack) {
  Middle(stack);
  __asm__ volatile("" ::: "memory");
}

TEST(Unwinder, FindsTheCallersInOrder) {
  CallStack stack;
  Outer(stack);
  ASSERT_GE(stack.count, 4U);
  const auto in = [&](unsigned index, auto* function) {
    return stack.addresses[index] - reinterpret_cast<std::uintptr_t>(function);
  };
  EXPECT_LT(in(0, &Inner), 400U);
  EXPECT_LT(in(1, &Middle), 400U);
  EXPECT_LT(in(2, &Outer), 400U);
}

TEST(Unwinder, GetsThroughLibcToTheStart) {
  CallStack stack;
  Outer(stack);
  // main is called by libc, libc by _start, which has no caller.
  ModuleOf last = {};
  ASSERT_TRUE(FindModule(stack.addresses[stack.count - 1], last));
  ModuleOf own = {};
  ASSERT_TRUE(FindModule(reinterpret_cast<std::uintptr_t>(&Outer), own));
  if (stack.count < CallStack::kMaxFrames) {
    EXPECT_EQ(last.begin, own.begin);
  }
}

CallStack g_crashed;

void OnSignal(int, siginfo_t*, void* context) {
  UnwindAt(PlaceOf(context), g_crashed);
  auto* const state = static_cast<ucontext_t*>(context);
  // Past the two bytes of ud2.
  state->uc_mcontext.gregs[REG_RIP] += 2;
}

__attribute__((noinline)) void Crash() {
  __asm__ volatile("ud2" ::: "memory", "rbx");
}

TEST(Unwinder, BeginsWhereASignalInterrupted) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_sigaction = &OnSignal;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGILL, &action, &before), 0);
  Crash();
  sigaction(SIGILL, &before, nullptr);
  ASSERT_GE(g_crashed.count, 2U);
  EXPECT_LT(g_crashed.addresses[0] - reinterpret_cast<std::uintptr_t>(&Crash),
            100U);
  EXPECT_TRUE(Has(g_crashed, &Crash));
}

TEST(Unwinder, AWildStackEndsTheWalk) {
  CallStack stack;
  ucontext_t context;
  ASSERT_EQ(getcontext(&context), 0);
  for (const std::uintptr_t wild :
       {std::uintptr_t{0}, std::uintptr_t{8}, std::uintptr_t{0x7fffffffffff}}) {
    context.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(wild);
    context.uc_mcontext.gregs[REG_RBP] = static_cast<greg_t>(wild + 16);
    UnwindAt(PlaceOf(&context), stack);
    EXPECT_LE(stack.count, 2U);
    context.uc_mcontext.gregs[REG_RIP] = 0x10;
    UnwindAt(PlaceOf(&context), stack);
    EXPECT_EQ(stack.count, 1U);
  }
}

}  // namespace
}  // namespace hakmem
