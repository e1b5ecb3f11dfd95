#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "allocator/process/signals.h"
#include "allocator/process/test_death.h"
#include "allocator/process/test_waits.h"

namespace hakmem {
namespace {

void Hook(int signal) { Say("hook " + std::to_string(signal) + "\n"); }

using EndSignalsTest = DeathTest;

TEST_F(EndSignalsTest, RunsAndTheProcessDiesAsItWould) {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    const Death death = DeathOf([number] {
      InstallEndHook(&Hook, true);
      kill(getpid(), number);
      pause();
    });
    EXPECT_EQ(death.signal, number);
    EXPECT_EQ(death.said, "hook " + std::to_string(number) + "\n");
  }
}

TEST_F(EndSignalsTest, ASecondSignalDoesNotWaitForTheHook) {
  const Death death = DeathOf([] {
    InstallEndHook(
        [](int signal) {
          Hook(signal);
          raise(signal);
          Say("still there\n");
        },
        true);
    raise(SIGTERM);
  });
  EXPECT_EQ(death.signal, SIGTERM);
  EXPECT_EQ(death.said, "hook " + std::to_string(SIGTERM) + "\n");
}

TEST_F(EndSignalsTest, WhatTheProgramWantsIsLeftAlone) {
  const Death ignored = DeathOf([] {
    signal(SIGINT, SIG_IGN);
    InstallEndHook(&Hook, true);
    raise(SIGINT);
  });
  EXPECT_EQ(ignored.signal, 0);
  EXPECT_EQ(ignored.said, "");
  const Death interrupted = DeathOf([] {
    InstallEndHook(&Hook, false);
    raise(SIGINT);
  });
  EXPECT_EQ(interrupted.signal, SIGINT);
  EXPECT_EQ(interrupted.said, "");
  const Death handled = DeathOf([] {
    signal(SIGTERM, [](int) { Say("handler\n"); });
    InstallEndHook(&Hook, true);
    raise(SIGTERM);
    signal(SIGHUP, [](int) { Say("later\n"); });
    raise(SIGHUP);
  });
  EXPECT_EQ(handled.signal, 0);
  EXPECT_EQ(handled.said, "handler\nlater\n");
}

// Process 1 of a namespace is spared by its own signals.
TEST_F(EndSignalsTest, ACallOfASparedProcessGoesOn) {
  const Death death = DeathOf([] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return;
    const pid_t first = fork();
    if (first == 0) {
      static int ends[2];
      EXPECT_EQ(pipe(ends), 0);
      InstallEndHook([](int) { WriteFd(ends[1], "x"); }, true);
      const pthread_t reader = pthread_self();
      const TestThread sender([reader] {
        // Its number where /proc is from; the namespace's is 1.
        char number[16] = {};
        EXPECT_GT(readlink("/proc/self", number, sizeof(number) - 1), 0);
        AwaitThat([&number] { return SleepsIn(std::stoi(number), SYS_read); });
        pthread_kill(reader, SIGTERM);
      });
      char byte = 0;
      Say(read(ends[0], &byte, 1) == 1 ? "read\n" : "interrupted\n");
    }
    waitpid(first, nullptr, 0);
  });
  if (death.said.empty()) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(death.said, "read\n");
}

}  // namespace
}  // namespace hakmem
