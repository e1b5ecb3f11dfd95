#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "allocator/process/signals.h"
#include "allocator/process/test_death.h"

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

}  // namespace
}  // namespace hakmem
