#include "allocator/process/helper_thread.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

struct Seen {
  std::string name;
  bool takes_signals = true;
};
Seen g_seen;
std::atomic<bool> g_done{false};

// Static thread-local memory of the program lies on each thread's stack.
thread_local char t_large[512 * 1024];

TEST(HelperThreadTest, RunsWithANameAndWithoutSignals) {
  ASSERT_EQ(StartHelperThread([] {
              t_large[sizeof t_large / 2] = 1;
              char name[16] = "";
              pthread_getname_np(pthread_self(), name, sizeof name);
              sigset_t blocked;
              pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
              g_seen = {name, sigismember(&blocked, SIGTERM) == 0};
              g_done.store(true, std::memory_order_release);
            }),
            0);
  while (!g_done.load(std::memory_order_acquire)) SleepMs(1);
  EXPECT_EQ(g_seen.name, "hakmem");
  EXPECT_FALSE(g_seen.takes_signals);
  // The caller's own mask is as it was.
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

}  // namespace
}  // namespace hakmem
