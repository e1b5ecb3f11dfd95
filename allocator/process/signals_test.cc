#include "allocator/process/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

volatile sig_atomic_t g_signal = 0;
void Note(int signal) { g_signal = signal; }

TEST(HoldSignals, PutsOffWhatOthersSend) {
  g_signal = 0;
  signal(SIGUSR2, &Note);
  const SignalMask before = HoldSignals();
  raise(SIGUSR2);
  EXPECT_EQ(g_signal, 0);
  // A handler of faults may be needed at any time.
  sigset_t now;
  ASSERT_EQ(sigprocmask(SIG_SETMASK, nullptr, &now), 0);
  EXPECT_EQ(sigismember(&now, SIGSEGV), 0);
  EXPECT_EQ(sigismember(&now, SIGTERM), 1);
  RestoreSignals(before);
  // ThreadSanitizer hands it on at a later call of libc.
  AwaitThat([] { return g_signal != 0 || raise(SIGURG) != 0; });
  EXPECT_EQ(g_signal, SIGUSR2);
  signal(SIGUSR2, SIG_DFL);
}

// Those below SIGRTMIN that are not the program's: each thread must answer.
TEST(HoldSignals, LetsLibcsOwnThrough) {
  const SignalMask before = HoldSignals();
  SignalMask held = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &held, sizeof(held));
  RestoreSignals(before);
  for (int signal = 32; signal < SIGRTMIN; ++signal) {
    EXPECT_EQ(held >> (signal - 1) & 1, 0u) << signal;
  }
}

}  // namespace
}  // namespace hakmem
