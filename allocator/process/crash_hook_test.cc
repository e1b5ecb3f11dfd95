#include "allocator/process/crash_hook.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "allocator/process/process.h"
#include "allocator/process/test_death.h"

namespace hakmem {
namespace {

void Hook(const CrashSite& site) {
  Say("hook " + std::to_string(site.signal) + "\n");
}

void Fault() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

using CrashHookTest = DeathTest;

TEST_F(CrashHookTest, RunsOnceAndTheProcessDiesAsItWould) {
  const Death fault = DeathOf([] {
    InstallCrashHook(&Hook, CrashSignals::kAll);
    Fault();
  });
  EXPECT_EQ(fault.signal, SIGSEGV);
  EXPECT_EQ(fault.said, "hook " + std::to_string(SIGSEGV) + "\n");
  const Death abort = DeathOf([] {
    InstallCrashHook(&Hook, CrashSignals::kAll);
    std::abort();
  });
  EXPECT_EQ(abort.signal, SIGABRT);
  EXPECT_EQ(abort.said, "hook " + std::to_string(SIGABRT) + "\n");
  const Death sent = DeathOf([] {
    InstallCrashHook(&Hook, CrashSignals::kAll);
    kill(getpid(), SIGBUS);
    pause();
  });
  EXPECT_EQ(sent.signal, SIGBUS);
  EXPECT_EQ(sent.said, "hook " + std::to_string(SIGBUS) + "\n");
}

TEST_F(CrashHookTest, AnEndByHakmemItselfRunsItToo) {
  const Death death = DeathOf([] {
    InstallCrashHook(&Hook, CrashSignals::kAll);
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
    InstallCrashHook(&Hook, CrashSignals::kAll);
    Fault();
  });
  EXPECT_EQ(before.said, "handler\n");
  const Death after = DeathOf([handle] {
    InstallCrashHook(&Hook, CrashSignals::kAll);
    signal(SIGSEGV, handle);
    Fault();
  });
  EXPECT_EQ(after.said, "handler\n");
}

TEST_F(CrashHookTest, TellsWhereTheAccessWas) {
  const Death death = DeathOf([] {
    InstallCrashHook(
        [](const CrashSite& site) {
          const bool known = site.has_address && site.address == 0 &&
                             !site.is_protected && site.pc != 0 &&
                             site.context != nullptr;
          Say(known ? "known\n" : "not known\n");
        },
        CrashSignals::kMemory);
    Fault();
  });
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.said, "known\n");
}

TEST_F(CrashHookTest, AMemoryHookLeavesOtherSignalsAlone) {
  const Death death = DeathOf([] {
    InstallCrashHook(&Hook, CrashSignals::kMemory);
    __builtin_trap();
  });
  EXPECT_EQ(death.signal, SIGILL);
  EXPECT_EQ(death.said, "");
}

TEST_F(CrashHookTest, ACrashInAHookTakesItsCourse) {
  const Death death = DeathOf([] {
    InstallCrashHook(
        [](const CrashSite& site) {
          Hook(site);
          Fault();
        },
        CrashSignals::kMemory);
    std::abort();
  });
  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGABRT) + "\n");
}

TEST_F(CrashHookTest, RunsOnTheAlternateStackWhenTheOwnIsUsedUp) {
  const Death death = DeathOf([] {
    UseAlternateStack();
    InstallCrashHook(&Hook, CrashSignals::kMemory);
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

TEST_F(CrashHookTest, RunsForEachProcess) {
  const Death death = DeathOf([] {
    InstallCrashHook(&Hook, CrashSignals::kMemory);
    // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): the case.
    const pid_t child = vfork();
    if (child == 0) Fault();
    waitpid(child, nullptr, 0);
    std::abort();
  });
  EXPECT_EQ(death.signal, SIGABRT);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGSEGV) + "\nhook " +
                            std::to_string(SIGABRT) + "\n");
}

TEST_F(CrashHookTest, AChildDoesNotWaitForAThreadThatItDoesNotHave) {
  const Death death = DeathOf([] {
    InstallCrashHook(
        [](const CrashSite& site) {
          Hook(site);
          if (site.signal == SIGBUS && fork() == 0) Fault();
          wait(nullptr);
        },
        CrashSignals::kMemory);
    raise(SIGBUS);
  });
  EXPECT_EQ(death.signal, SIGBUS);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGBUS) + "\nhook " +
                            std::to_string(SIGSEGV) + "\n");
}

TEST_F(CrashHookTest, AnIgnoredSignalStaysIgnored) {
  const Death death = DeathOf([] {
    signal(SIGFPE, SIG_IGN);
    InstallCrashHook(&Hook, CrashSignals::kAll);
    raise(SIGFPE);
    Say("alive\n");
  });
  EXPECT_EQ(death.said, "alive\n");
  EXPECT_EQ(death.signal, 0);
}

}  // namespace
}  // namespace hakmem
