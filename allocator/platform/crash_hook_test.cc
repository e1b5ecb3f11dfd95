#include "allocator/platform/crash_hook.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "allocator/base/sanitizer.h"
#include "allocator/platform/process.h"

namespace hakmem {
namespace {

int output = -1;

void Hook(const CrashSite& site) {
  const std::string text = "hook " + std::to_string(site.signal) + "\n";
  WriteFd(output, text);
}

struct Death {
  int signal = 0;
  std::string said;
};

// What a child says and dies of that runs `die`.
Death DeathOf(const std::function<void()>& die) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    output = pipes[1];
    die();
    _exit(0);
  }
  close(pipes[1]);
  Death death;
  char buffer[256];
  for (ssize_t got; (got = read(pipes[0], buffer, sizeof(buffer))) > 0;) {
    death.said.append(buffer, static_cast<std::size_t>(got));
  }
  close(pipes[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  death.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return death;
}

void Fault() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

class CrashHookTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kAddressSanitizer || kThreadSanitizer || kUndefinedBehaviorSanitizer) {
      GTEST_SKIP() << "sanitizers have handlers of their own";
    }
  }
};

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
    WriteFd(output, "handler\n");
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
          WriteFd(output, known ? "known\n" : "not known\n");
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

TEST_F(CrashHookTest, AnIgnoredSignalStaysIgnored) {
  const Death death = DeathOf([] {
    signal(SIGFPE, SIG_IGN);
    InstallCrashHook(&Hook, CrashSignals::kAll);
    raise(SIGFPE);
    WriteFd(output, "alive\n");
  });
  EXPECT_EQ(death.said, "alive\n");
  EXPECT_EQ(death.signal, 0);
}

}  // namespace
}  // namespace hakmem
