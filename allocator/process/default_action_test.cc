#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "allocator/process/fault_hook.h"
#include "allocator/process/test_death.h"

namespace hakmem {
namespace {

void ListenToCrashes() {
  UseAlternateStack();
  AddCrashHook([](const Fault&) { Say("hook\n"); }, kMemoryFaults);
}

void ListenToFaults() {
  UseAlternateStack();
  AddFaultListener(
      [](const Fault&) {
        Say("hook\n");
        return FaultVerdict::kUnknown;
      },
      kFaults | SignalBit(SIGABRT), OtherHandlers::kStandBefore);
}

#if defined(__x86_64__)
// Sends this process a signal for whose frame the stack has no room, which the
// kernel answers by SIGSEGV.
void GetSignalOnFullStack() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  constexpr std::size_t kPage = 4096;
  char* const pages =
      static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages, kPage, PROT_NONE);
  long result = SYS_kill;
  __asm__ volatile(
      "mov %%rsp, %%rbx\n mov %[top], %%rsp\n syscall\n mov %%rbx, %%rsp"
      : "+a"(result)
      : "D"(static_cast<long>(getpid())),
        "S"(long{SIGUSR1}), [top] "r"(pages + kPage + 256)
      : "rbx", "rcx", "r11", "memory");
}

TEST(DefaultActionTest, ASignalThatFitsOnNoStackEndsTheProcess) {
  if (kAddressSanitizer || kThreadSanitizer || kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "sanitizers have handlers of their own";
  }
  for (const auto listen : {&ListenToCrashes, &ListenToFaults}) {
    const Death death = DeathOf([listen] {
      listen();
      GetSignalOnFullStack();
      Say("went on\n");
    });
    EXPECT_EQ(death.signal, SIGSEGV);
    EXPECT_EQ(death.said, "hook\n");
  }
}
#endif

TEST(DefaultActionTest, AnAbortThatAFileSentEndsTheProcess) {
  if (kAddressSanitizer || kThreadSanitizer || kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "sanitizers have handlers of their own";
  }
  for (const auto listen : {&ListenToCrashes, &ListenToFaults}) {
    const Death death = DeathOf([listen] {
      listen();
      int pipes[2];
      if (pipe(pipes) != 0) return;
      fcntl(pipes[0], F_SETOWN, getpid());
      fcntl(pipes[0], F_SETSIG, SIGABRT);
      fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
      WriteFd(pipes[1], "x");
      Say("went on\n");
    });
    EXPECT_EQ(death.signal, SIGABRT);
    EXPECT_EQ(death.said, "hook\n");
  }
}

}  // namespace
}  // namespace hakmem
