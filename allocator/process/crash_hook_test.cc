#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "allocator/base/compiler.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/process.h"
#include "allocator/process/test_death.h"

namespace hakmem {
namespace {

void Hook(const Fault& fault) {
  Say("hook " + std::to_string(fault.signal) + "\n");
}

void Crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

using CrashHookTest = DeathTest;

TEST_F(CrashHookTest, RunsOnceAndTheProcessDiesAsItWould) {
  const Death access = DeathOf([] {
    AddCrashHook(&Hook, kAllFaults);
    Crash();
  });
  EXPECT_EQ(access.signal, SIGSEGV);
  EXPECT_EQ(access.said, "hook " + std::to_string(SIGSEGV) + "\n");
  const Death abort = DeathOf([] {
    AddCrashHook(&Hook, kAllFaults);
    std::abort();
  });
  EXPECT_EQ(abort.signal, SIGABRT);
  EXPECT_EQ(abort.said, "hook " + std::to_string(SIGABRT) + "\n");
  const Death sent = DeathOf([] {
    AddCrashHook(&Hook, kAllFaults);
    kill(getpid(), SIGBUS);
    pause();
  });
  EXPECT_EQ(sent.signal, SIGBUS);
  EXPECT_EQ(sent.said, "hook " + std::to_string(SIGBUS) + "\n");
}

TEST_F(CrashHookTest, AnEndByHakmemItselfRunsItToo) {
  const Death death = DeathOf([] {
    AddCrashHook(
        [](const Fault& fault) {
          if (!fault.is_by_signal) Hook(fault);
        },
        kAllFaults);
    AbortProcess();
  });
  EXPECT_EQ(death.signal, SIGABRT);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGABRT) + "\n");
}

TEST_F(CrashHookTest, AHandlerOfTheProgramStaysAlone) {
  const auto handle = [](int) {
    Say("handler\n");
    _exit(0);
  };
  const Death before = DeathOf([handle] {
    signal(SIGSEGV, handle);
    AddCrashHook(&Hook, kAllFaults);
    Crash();
  });
  EXPECT_EQ(before.said, "handler\n");
  const Death after = DeathOf([handle] {
    AddCrashHook(&Hook, kAllFaults);
    signal(SIGSEGV, handle);
    Crash();
  });
  EXPECT_EQ(after.said, "handler\n");
}

TEST_F(CrashHookTest, TellsWhereTheAccessWas) {
  const Death death = DeathOf([] {
    AddCrashHook(
        [](const Fault& fault) {
          const bool known = fault.has_address && fault.address == 0 &&
                             !fault.is_protected && fault.is_by_signal &&
                             fault.place.instruction != 0 &&
                             fault.place.stack_pointer != 0;
          Say(known ? "known\n" : "not known\n");
        },
        kMemoryFaults);
    Crash();
  });
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.said, "known\n");
}

TEST_F(CrashHookTest, AMemoryHookLeavesOtherSignalsAlone) {
  const Death death = DeathOf([] {
    AddCrashHook(&Hook, kMemoryFaults);
    __builtin_trap();
  });
  EXPECT_EQ(death.signal, HAK_TRAP_SIGNAL);
  EXPECT_EQ(death.said, "");
}

TEST_F(CrashHookTest, ACrashInAHookTakesItsCourse) {
  const Death death = DeathOf([] {
    AddCrashHook(
        [](const Fault& fault) {
          Hook(fault);
          Crash();
        },
        kMemoryFaults);
    std::abort();
  });
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGABRT) + "\n");
}

TEST_F(CrashHookTest, RunsOnTheAlternateStackWhenTheOwnIsUsedUp) {
  const Death death = DeathOf([] {
    UseAlternateStack();
    AddCrashHook(&Hook, kMemoryFaults);
    rlimit stack = {};
    getrlimit(RLIMIT_STACK, &stack);
    struct Deep {
      static int Call(int n) {
        volatile char frame[4096];
        frame[0] = static_cast<char>(n);
        return n < 0 ? 0 : Call(n + 1) + frame[0];
      }
    };
    Deep::Call(1);
  });
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGSEGV) + "\n");
}

// Else a handler of the program's that needs more would write to whatever lies
// below.
TEST_F(CrashHookTest, TheAlternateStackEndsInAFault) {
  const Death death = DeathOf([] {
    UseAlternateStack();
    stack_t now = {};
    sigaltstack(nullptr, &now);
    volatile char* const bottom = static_cast<char*>(now.ss_sp);
    *bottom = 1;
    Say("as long as it says\n");
    bottom[-1] = 1;
    Say("longer\n");
  });
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.said, "as long as it says\n");
}

TEST_F(CrashHookTest, RunsForEachProcess) {
  const Death death = DeathOf([] {
    AddCrashHook(&Hook, kMemoryFaults);
    // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): the case.
    const pid_t child = vfork();
    if (child == 0) Crash();
    waitpid(child, nullptr, 0);
    std::abort();
  });
  EXPECT_EQ(death.signal, SIGABRT);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGSEGV) + "\nhook " +
                            std::to_string(SIGABRT) + "\n");
}

TEST_F(CrashHookTest, AChildDoesNotWaitForAThreadThatItDoesNotHave) {
  const Death death = DeathOf([] {
    AddCrashHook(
        [](const Fault& fault) {
          Hook(fault);
          if (fault.signal == SIGBUS && fork() == 0) Crash();
          wait(nullptr);
        },
        kMemoryFaults);
    raise(SIGBUS);
  });
  EXPECT_EQ(death.signal, SIGBUS);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGBUS) + "\nhook " +
                            std::to_string(SIGSEGV) + "\n");
}

TEST_F(CrashHookTest, AnIgnoredSignalStaysIgnored) {
  const Death death = DeathOf([] {
    signal(SIGFPE, SIG_IGN);
    AddCrashHook(&Hook, kAllFaults);
    raise(SIGFPE);
    Say("alive\n");
  });
  EXPECT_EQ(death.said, "alive\n");
  EXPECT_EQ(death.signal, 0);
}

}  // namespace
}  // namespace hakmem
