#include "allocator/platform/signals.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

volatile sig_atomic_t g_signal = 0;
void Note(int signal) { g_signal = signal; }

TEST(HandleUnusedSignal, TakesOneThatHasTheDefaultAction) {
  ASSERT_TRUE(HandleUnusedSignal(SIGUSR2, &Note));
  raise(SIGUSR2);
  EXPECT_EQ(g_signal, SIGUSR2);
  signal(SIGUSR2, SIG_DFL);
}

TEST(HandleUnusedSignal, LeavesTheProgramsActionsAlone) {
  signal(SIGUSR2, SIG_IGN);
  EXPECT_FALSE(HandleUnusedSignal(SIGUSR2, &Note));
  struct sigaction now = {};
  ASSERT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  signal(SIGUSR2, SIG_DFL);
  EXPECT_FALSE(HandleUnusedSignal(SIGKILL, &Note));
  EXPECT_FALSE(HandleUnusedSignal(0, &Note));
  EXPECT_FALSE(HandleUnusedSignal(1000, &Note));
}

}  // namespace
}  // namespace hakmem
