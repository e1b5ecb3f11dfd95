#include "allocator/stacks/cached_unwinder.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <thread>
#include <vector>

#include "allocator/base/compiler.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/startup_modules.h"
#include "gtest/gtest.h"

// This file is compiled without frame pointers, but for functions that ask for
// their own, like entry points.
namespace hakmem {
namespace {

using Addresses = std::vector<std::uintptr_t>;

// What libc's unwinder says of the callers of the function with this frame.
HAK_NOINLINE Addresses Expected(std::uintptr_t return_address) {
  void* found[100];
  const int count = backtrace(found, 100);
  Addresses addresses;
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(found[i]);
    if (address != return_address && addresses.empty()) continue;
    if (addresses.size() < CallStack::kMaxFrames) addresses.push_back(address);
  }
  return addresses;
}

// On a stack that is not known beyond a page.
bool g_in_part = false;

// Returns how many callers there are, which both agree upon.
HAK_NOINLINE std::size_t Compare() {
  const auto* const frame =
      static_cast<const std::uintptr_t*>(__builtin_frame_address(0));
  CallStack stack;
  UnwindOwnStack(frame, stack);
  Addresses expected = Expected(frame[1]);
  if (g_in_part && stack.count < expected.size()) expected.resize(stack.count);
  EXPECT_EQ(Addresses(stack.addresses, stack.addresses + stack.count),
            expected);
  return stack.count;
}

// Frames of many kinds, in an order that a number tells.
HAK_NOINLINE std::size_t Descend(std::uint64_t order, int depth);

HAK_NOINLINE std::size_t Plain(std::uint64_t order, int depth) {
  const std::size_t count = Descend(order, depth);
  __asm__ volatile("" ::: "memory");
  return count;
}
// The frame pointer is a register like others.
HAK_NOINLINE std::size_t Clobbering(std::uint64_t order, int depth) {
  __asm__ volatile("xor %%ebp, %%ebp" ::: "rbp", "rbx", "r12", "r13", "memory");
  const std::size_t count = Descend(order, depth);
  __asm__ volatile("" ::: "memory");
  return count;
}
HAK_NOINLINE std::size_t Long(std::uint64_t order, int depth) {
  volatile char room[20'000];
  room[depth] = 1;
  const std::size_t count = Descend(order, depth);
  return count + room[depth] - 1;
}
// Of a length that is known at run time: by the frame pointer alone.
HAK_NOINLINE std::size_t Dynamic(std::uint64_t order, int depth) {
  auto* const room = static_cast<volatile char*>(
      __builtin_alloca(static_cast<std::size_t>(100 + depth * 24)));
  room[0] = 1;
  const std::size_t count = Descend(order, depth);
  return count + static_cast<std::size_t>(room[0]) - 1;
}
HAK_NOINLINE std::size_t Aligned(std::uint64_t order, int depth) {
  alignas(256) volatile char room[512];
  room[0] = 1;
  const std::size_t count = Descend(order, depth);
  return count + static_cast<std::size_t>(room[0]) - 1;
}
// Through a function of libc's.
HAK_NOINLINE std::size_t Sorted(std::uint64_t order, int depth) {
  struct Call {
    std::uint64_t order;
    int depth;
    std::size_t count;
  };
  static thread_local Call* call;
  Call mine = {order, depth, 0};
  call = &mine;
  int pair[2] = {2, 1};
  std::qsort(pair, 2, sizeof(int), [](const void*, const void*) {
    Call* const current = call;
    current->count = Descend(current->order, current->depth);
    // Sanitizers' qsort compares more often.
    call = current;
    return 0;
  });
  return mine.count;
}

HAK_NOINLINE std::size_t Descend(std::uint64_t order, int depth) {
  constexpr decltype(&Plain) kKinds[] = {&Plain,   &Clobbering, &Long,
                                         &Dynamic, &Aligned,    &Sorted};
  const std::size_t count = depth == 0
                                ? Compare()
                                : kKinds[order % std::size(kKinds)](
                                      order / std::size(kKinds), depth - 1);
  __asm__ volatile("" ::: "memory");
  return count;
}

// As the library does before the program's main.
[[gnu::constructor]] void NoteModules() { NoteStartupModules(); }

TEST(CachedUnwinder, SaysWhatLibcSays) {
  std::uint64_t order = 1;
  for (int i = 0; i < 300; ++i) {
    order = order * 6364136223846793005U + 1442695040888963407U;
    const int depth = i % 12;
    EXPECT_GT(Descend(order >> 16, depth), static_cast<unsigned>(depth));
  }
}

TEST(CachedUnwinder, EndsAtTheMostFrames) {
  EXPECT_EQ(Descend(0, 60), CallStack::kMaxFrames);
}

TEST(CachedUnwinder, OnOtherThreadsAtOnce) {
  // On the first thread, as the library's constructor does.
  NoteStacks();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        Descend((i * 7919 + t) * 0x9e3779b9, static_cast<int>(i % 9));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A coroutine's stack, of which no more is known than a page.
ucontext_t g_main;
ucontext_t g_other;
TEST(CachedUnwinder, OnAnotherStack) {
  constexpr std::size_t kBytes = 256 * 1024;
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  Compare();
  ASSERT_EQ(getcontext(&g_other), 0);
  g_other.uc_stack.ss_sp = room;
  g_other.uc_stack.ss_size = kBytes;
  g_other.uc_link = &g_main;
  makecontext(
      &g_other,
      [] {
        EXPECT_GE(Descend(0, 5), 5U);
        // Two long frames.
        EXPECT_GE(Descend(6 * 2 + 2, 3), 1U);
      },
      0);
  g_in_part = true;
  ASSERT_EQ(swapcontext(&g_main, &g_other), 0);
  g_in_part = false;
  munmap(room, kBytes);
}

// Tables of modules are read without the kernel.
TEST(CachedUnwinder, AsksTheKernelForNoCopies) {
  EXPECT_EXIT(
      {
        NoteStartupModules();
        if (!ForbidSystemCalls(
                {SYS_process_vm_readv, SYS_openat, SYS_getpid})) {
          _exit(77);
        }
        // By functions that were not met before.
        Descend(6 * 2 + 2, 3);
        Descend(6 * 6 + 6 * 2 + 3, 3);
        Descend(6 * 1 + 5, 2);
        _exit(testing::Test::HasFailure() ? 1 : 42);
      },
      testing::ExitedWithCode(42), "");
}

#if defined(__x86_64__)
CallStack g_captured;
HAK_NOINLINE void Capture() {
  UnwindOwnStack(__builtin_frame_address(0), g_captured);
  __asm__ volatile("" ::: "memory");
}

// CPython's trampolines, two of them, with data where a frame pointer would be.
extern "C" void CallTwiceOver(void (*outer)(void*, void (*)(), void*),
                              void (*capture)(), void* inner);
__asm__(
    ".text\n"
    ".globl CallTwiceOver\n"
    ".type CallTwiceOver, @function\n"
    "CallTwiceOver:\n"
    ".cfi_startproc\n"
    "push %rbp\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset %rbp, -16\n"
    "mov $5, %ebp\n"
    "mov %rdi, %rax\n"
    "call *%rax\n"
    "pop %rbp\n"
    ".cfi_def_cfa_offset 8\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size CallTwiceOver, .-CallTwiceOver\n");

TEST(CachedUnwinder, OverATrampolineWithoutAFrame) {
  // sub $8,%rsp; call *%rsi; add $8,%rsp; ret
  constexpr unsigned char kCode[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6,
                                     0x48, 0x83, 0xc4, 0x08, 0xc3};
  constexpr std::size_t kBytes = 4096;
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) GTEST_SKIP() << "no code may be made here";
  auto* const code = static_cast<unsigned char*>(room);
  std::copy(std::begin(kCode), std::end(kCode), code);
  static void (*trampoline)(void*, void (*)(), void*);
  trampoline = reinterpret_cast<void (*)(void*, void (*)(), void*)>(code);
  // What dlopen brought is read where a function runs alone.
  NoteStartupModules();
  // Through a function with a table to the second one.
  CallTwiceOver(
      trampoline,
      +[] {
        CallTwiceOver(trampoline, &Capture, nullptr);
        __asm__ volatile("" ::: "memory");
      },
      nullptr);
  const auto begin = reinterpret_cast<std::uintptr_t>(code);
  EXPECT_EQ(g_captured.addresses[0], begin + 6);
  unsigned seen = 0;
  for (unsigned i = 0; i < g_captured.count; ++i) {
    seen += g_captured.addresses[i] == begin + 6;
  }
  EXPECT_EQ(seen, 2U);
  // The test, and what runs it.
  EXPECT_GT(g_captured.count, 6U);
  munmap(room, kBytes);
}

// Two functions that a compiler at run time has made: by frame pointers.
TEST(CachedUnwinder, ThroughCodeOfNoModule) {
  // push %rbp; mov %rsp,%rbp; call *%rsi, or *%rdx; pop %rbp; ret
  constexpr unsigned char kInner[] = {0x55, 0x48, 0x89, 0xe5,
                                      0xff, 0xd6, 0x5d, 0xc3};
  constexpr unsigned char kOuter[] = {0x55, 0x48, 0x89, 0xe5,
                                      0xff, 0xd2, 0x5d, 0xc3};
  constexpr std::size_t kBytes = 4096;
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) GTEST_SKIP() << "no code may be made here";
  auto* const code = static_cast<unsigned char*>(room);
  std::copy(std::begin(kInner), std::end(kInner), code);
  std::copy(std::begin(kOuter), std::end(kOuter), code + 64);
  using Outer = void (*)(void*, void (*)(), void*);
  reinterpret_cast<Outer>(code + 64)(nullptr, &Capture, code);
  ASSERT_GT(g_captured.count, 3U);
  const auto begin = reinterpret_cast<std::uintptr_t>(code);
  EXPECT_EQ(g_captured.addresses[0], begin + 6);
  EXPECT_EQ(g_captured.addresses[1], begin + 64 + 6);
  munmap(room, kBytes);
}
#endif

// Whatever the frame pointer holds, nothing faults, and no word of it is taken
// for a caller.
TEST(CachedUnwinder, AFrameThatLeadsNowhere) {
  const std::uintptr_t bad[] = {0, 1, 0x1000, ~std::uintptr_t{0} - 7};
  for (const std::uintptr_t next : bad) {
    // No module knows this code.
    std::uintptr_t frame[4] = {next, 0x123456789, 5, 5};
    CallStack stack;
    UnwindOwnStack(frame, stack);
    EXPECT_EQ(stack.count, 1U);
  }
  std::uintptr_t frames[4] = {0, 0x123456789, 0, 0x777777};
  frames[0] = reinterpret_cast<std::uintptr_t>(&frames[2]);
  CallStack stack;
  UnwindOwnStack(frames, stack);
  EXPECT_EQ(stack.count, 1U);
}

}  // namespace
}  // namespace hakmem
