#include "allocator/process/fault_hook.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <string>

#include "allocator/base/system_call.h"
#include "allocator/process/test_death.h"
#include "allocator/process/test_waits.h"

namespace hakmem {
namespace {

void Read() {
  [[maybe_unused]] const char byte =
      *static_cast<volatile char*>(Forbidden() + 6);
}

FaultVerdict SayFirst(const Fault&) {
  Say("first\n");
  return FaultVerdict::kUnknown;
}
FaultVerdict SayExplained(const Fault&) {
  Say("explained\n");
  return FaultVerdict::kExplained;
}
FaultVerdict SaySecond(const Fault&) {
  Say("second\n");
  return FaultVerdict::kUnknown;
}
FaultVerdict SayWhat(const Fault& fault) {
  const char* access = "unknown";
  if (fault.access == Fault::Access::kRead) access = "read";
  if (fault.access == Fault::Access::kWrite) access = "write";
  Say(std::to_string(fault.signal) + " " + access + " ");
  Say(fault.has_address
          ? std::to_string(fault.address -
                           reinterpret_cast<std::uintptr_t>(Forbidden()))
          : "nowhere");
  Say("\n");
  return FaultVerdict::kUnknown;
}

FaultVerdict Mend(const Fault&) {
  const auto page = static_cast<std::size_t>(getpagesize());
  return mprotect(Forbidden(), page, PROT_READ | PROT_WRITE) == 0
             ? FaultVerdict::kMended
             : FaultVerdict::kUnknown;
}
FaultVerdict EndAtTheTenth(const Fault&) {
  static int count = 0;
  if (++count == 10) _exit(0);
  return FaultVerdict::kUnknown;
}
void SayHook(const Fault&) { Say("hook\n"); }

void HandleAndEnd(int) {
  Say("handler\n");
  _exit(0);
}

class FaultHookTest : public DeathTest {};

TEST_F(FaultHookTest, TellsWhereAndHowThenTheProcessDiesAsItWould) {
  const auto die_of = [](void (*access)()) {
    return DeathOf([access] {
      EXPECT_EQ(
          AddFaultListener(&SayWhat, kFaults, OtherHandlers::kStandBefore),
          kFaults);
      access();
    });
  };
  const Death write = die_of(&WriteForbidden);
  EXPECT_EQ(write.signal, SIGSEGV);
  const Death read = die_of(&Read);
  EXPECT_EQ(read.signal, SIGSEGV);
#if defined(__x86_64__)
  EXPECT_EQ(write.said, "11 write 5\n");
  EXPECT_EQ(read.said, "11 read 6\n");
#endif
}

TEST_F(FaultHookTest, ASignalThatWasSentHasNoAddressAndStillEndsTheProcess) {
  const Death sent = DeathOf([] {
    AddFaultListener(&SayWhat, kFaults, OtherHandlers::kStandBefore);
    kill(getpid(), SIGBUS);
    pause();
  });
  EXPECT_EQ(sent.signal, SIGBUS);
  EXPECT_EQ(sent.said, "7 unknown nowhere\n");
  const Death abort = DeathOf([] {
    AddFaultListener(&SayWhat, SignalBit(SIGABRT), OtherHandlers::kLeaveAlone);
    std::abort();
  });
  EXPECT_EQ(abort.signal, SIGABRT);
  EXPECT_EQ(abort.said, "6 unknown nowhere\n");
}

// Where calls are refused, the handler cannot be taken away.
TEST_F(FaultHookTest, AFaultInStrictModeEndsTheProcess) {
  const Death death = DeathOf([] {
    AddFaultListener(&EndAtTheTenth, kFaults, OtherHandlers::kStandBefore);
    AddCrashHook(&SayHook, kFaults);
    t_is_strict = true;
    WriteForbidden();
  });
  EXPECT_EQ(death.said, "hook\n");
  EXPECT_EQ(death.signal, SIGSEGV);
}

TEST_F(FaultHookTest, ListenersAreToldInTheirOrderUntilOneExplains) {
  const Death both = DeathOf([] {
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
    AddFaultListener(&SaySecond, kFaults, OtherHandlers::kLeaveAlone);
    WriteForbidden();
  });
  EXPECT_EQ(both.said, "first\nsecond\n");
  const Death one = DeathOf([] {
    AddFaultListener(&SayExplained, kFaults, OtherHandlers::kStandBefore);
    AddFaultListener(&SaySecond, kFaults, OtherHandlers::kLeaveAlone);
    WriteForbidden();
  });
  EXPECT_EQ(one.said, "explained\n");
  EXPECT_EQ(one.signal, SIGSEGV);
}

TEST_F(FaultHookTest, WhatIsMendedGoesOn) {
  const Death death = DeathOf([] {
    signal(SIGSEGV, &HandleAndEnd);
    AddFaultListener(&Mend, kFaults, OtherHandlers::kStandBefore);
    AddFaultListener(&SaySecond, kFaults, OtherHandlers::kStandBefore);
    WriteForbidden();
    Say(Forbidden()[5] == 1 ? "written\n" : "lost\n");
  });
  EXPECT_EQ(death.said, "written\n");
  EXPECT_EQ(death.signal, 0);
}

TEST_F(FaultHookTest, ACrashHookRunsAfterListenersOfWhatNobodyMends) {
  const Death crash = DeathOf([] {
    AddCrashHook(&SayHook, kAllFaults);
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
    WriteForbidden();
  });
  EXPECT_EQ(crash.said, "first\nhook\n");
  EXPECT_EQ(crash.signal, SIGSEGV);
  const Death mended = DeathOf([] {
    AddCrashHook(&SayHook, kAllFaults);
    AddFaultListener(&Mend, kFaults, OtherHandlers::kStandBefore);
    WriteForbidden();
    Say("written\n");
  });
  EXPECT_EQ(mended.said, "written\n");
  EXPECT_EQ(mended.signal, 0);
}

TEST_F(FaultHookTest, AnEarlierHandlerRunsAfterwardsOrIsLeftAlone) {
  const Death before = DeathOf([] {
    signal(SIGSEGV, &HandleAndEnd);
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
    // Nor will another hear of it that would leave the handler alone.
    if (AddFaultListener(&SaySecond, kFaults, OtherHandlers::kLeaveAlone) !=
        SignalBit(SIGBUS)) {
      Say("heard\n");
    }
    WriteForbidden();
  });
  EXPECT_EQ(before.said, "first\nhandler\n");
  const Death alone = DeathOf([] {
    signal(SIGSEGV, &HandleAndEnd);
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kLeaveAlone);
    WriteForbidden();
  });
  EXPECT_EQ(alone.said, "handler\n");
}

TEST_F(FaultHookTest, ALaterHandlerTakesOurPlace) {
  const Death after = DeathOf([] {
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
    signal(SIGSEGV, &HandleAndEnd);
    WriteForbidden();
  });
  EXPECT_EQ(after.said, "handler\n");
}

TEST_F(FaultHookTest, AnIgnoredSignalStaysIgnored) {
  const Death death = DeathOf([] {
    signal(SIGSEGV, SIG_IGN);
    if (AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore) !=
        SignalBit(SIGBUS)) {
      Say("heard\n");
    }
    raise(SIGSEGV);
    Say("alive\n");
  });
  EXPECT_EQ(death.said, "alive\n");
  EXPECT_EQ(death.signal, 0);
}

TEST_F(FaultHookTest, TellsWhetherTheStackForHandlersHasRoom) {
  const auto die_on = [](std::size_t bytes, int flags = 0) {
    return DeathOf([bytes, flags] {
      alignas(16) static char stack[64 * 1024];
      const stack_t handlers = {
          .ss_sp = stack, .ss_flags = flags, .ss_size = bytes};
      if (bytes != 0) sigaltstack(&handlers, nullptr);
      AddFaultListener(
          [](const Fault& fault) {
            Say(fault.has_stack ? "room\n" : "no room\n");
            return FaultVerdict::kUnknown;
          },
          kFaults, OtherHandlers::kStandBefore);
      WriteForbidden();
    });
  };
  EXPECT_EQ(die_on(0).said, "room\n");
  EXPECT_EQ(die_on(8 * 1024).said, "no room\n");
  // SS_AUTODISARM, which older headers lack.
  constexpr int kAutoDisarm = static_cast<int>(1U << 31);
  EXPECT_EQ(die_on(8 * 1024, kAutoDisarm).said, "no room\n");
  EXPECT_EQ(die_on(24 * 1024).said, "room\n");
}

sigjmp_buf recovery;

// The earlier handler's flags and mask hold while it runs, and it may go on
// elsewhere, time and again.
TEST_F(FaultHookTest, TheEarlierHandlerRunsAsTheKernelWouldRunIt) {
  const Death death = DeathOf([] {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaddset(&action.sa_mask, SIGUSR1);
    action.sa_sigaction = [](int, siginfo_t* info, void* context) {
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      const bool right = sigismember(&blocked, SIGUSR1) == 1 &&
                         sigismember(&blocked, SIGSEGV) == 0 &&
                         info->si_addr == Forbidden() + 5 && context != nullptr;
      Say(right ? "right\n" : "wrong\n");
      siglongjmp(recovery, 1);
    };
    sigaction(SIGSEGV, &action, nullptr);
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
    if (sigsetjmp(recovery, 1) == 0) WriteForbidden();
    if (sigsetjmp(recovery, 1) == 0) WriteForbidden();
    Say("on\n");
  });
  EXPECT_EQ(death.said, "first\nright\nfirst\nright\non\n");
  EXPECT_EQ(death.signal, 0);
}

// A call that the signal has interrupted goes on, where the earlier handler
// wants that.
TEST_F(FaultHookTest, ACallGoesOnAfterTheEarlierHandler) {
  const auto die_with = [](int flags) {
    return DeathOf([flags] {
      static int ends[2];
      EXPECT_EQ(pipe(ends), 0);
      struct sigaction action = {};
      action.sa_flags = flags;
      action.sa_handler = [](int) { WriteFd(ends[1], "x"); };
      sigaction(SIGSEGV, &action, nullptr);
      AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
      const pthread_t reader = pthread_self();
      const pid_t reader_id = gettid();
      const TestThread sender([reader, reader_id] {
        AwaitThat([reader_id] { return SleepsIn(reader_id, SYS_read); });
        pthread_kill(reader, SIGSEGV);
      });
      char byte = 0;
      Say(read(ends[0], &byte, 1) == 1 ? "read\n" : "interrupted\n");
    });
  };
  EXPECT_EQ(die_with(SA_RESTART).said, "first\nread\n");
  EXPECT_EQ(die_with(0).said, "first\ninterrupted\n");
}

TEST_F(FaultHookTest, TheEarlierHandlerHasItsStack) {
  const auto die_with = [](int flags) {
    return DeathOf([flags] {
      alignas(16) static char stack[64 * 1024];
      const stack_t handlers = {
          .ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
      sigaltstack(&handlers, nullptr);
      struct sigaction action = {};
      action.sa_flags = flags;
      action.sa_handler = [](int) {
        stack_t now = {};
        sigaltstack(nullptr, &now);
        Say((now.ss_flags & SS_ONSTACK) != 0 ? "handlers'\n" : "own\n");
      };
      sigaction(SIGSEGV, &action, nullptr);
      AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
      raise(SIGSEGV);
    });
  };
  EXPECT_EQ(die_with(SA_ONSTACK).said, "first\nhandlers'\n");
  EXPECT_EQ(die_with(0).said, "first\nown\n");
}

// A child of a fork has both handlers, and what it starts has neither.
TEST_F(FaultHookTest, AChildHasTheHandlersAndAnotherProgramNone) {
  const auto in_child = [](void (*die)()) {
    return DeathOf([die] {
      signal(SIGSEGV, [](int) { Say("handler\n"); });
      AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
      const pid_t child = fork();
      if (child == 0) {
        die();
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      Say(WIFSIGNALED(status) ? "killed\n" : "ended\n");
    });
  };
  EXPECT_EQ(in_child([] { raise(SIGSEGV); }).said, "first\nhandler\nended\n");
  EXPECT_EQ(in_child([] {
              execl("/bin/sh", "sh", "-c", "kill -SEGV $$", nullptr);
            }).said,
            "killed\n");
}

TEST_F(FaultHookTest, AHandlerForOnceRunsOnce) {
  const Death death = DeathOf([] {
    struct sigaction action = {};
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    action.sa_handler = [](int) { Say("once\n"); };
    sigaction(SIGSEGV, &action, nullptr);
    AddFaultListener(&SayFirst, kFaults, OtherHandlers::kStandBefore);
    WriteForbidden();
  });
  EXPECT_EQ(death.said, "first\nonce\nfirst\n");
  EXPECT_EQ(death.signal, SIGSEGV);
}

}  // namespace
}  // namespace hakmem
