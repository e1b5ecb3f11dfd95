#include "allocator/process/gated_lock.h"

#include <sys/syscall.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

void TheThreadThatForksGoesThroughTheGate() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  GatedLock lock;
  GatedLock::CloseGate();
  lock.AwaitFree();
  {
    const GatedLockHolder hold(lock);
  }
  EXPECT_TRUE(lock.TryLock());
  lock.AwaitFree();
  lock.Unlock();
  GatedLock::OpenGate();
}
TEST(GatedLock, TheThreadThatForksGoesThroughTheGate) {
  TheThreadThatForksGoesThroughTheGate();
}

TEST(GatedLock, OthersWaitUntilItOpens) {
  GatedLock lock;
  GatedLock::CloseGate();
  lock.AwaitFree();
  std::atomic<bool> tried{true};
  std::atomic<int> inside{0};
  std::deque<TestThread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      if (lock.TryLock()) {
        lock.Unlock();
      } else {
        tried = false;
      }
      const GatedLockHolder hold(lock);
      ++inside;
    });
  }
  for (TestThread& other : others) other.AwaitSleepIn(SYS_futex);
  EXPECT_EQ(inside, 0);
  EXPECT_FALSE(tried);
  {
    const GatedLockHolder hold(lock);
  }
  GatedLock::OpenGate();
  for (TestThread& other : others) other.Join();
  EXPECT_EQ(inside, 3);
}

// The guarded number is plain: if somebody were inside while the gate is
// closed, a count would be lost, and ThreadSanitizer would tell.
TEST(GatedLock, NobodyIsInsideOnceItWasFree) {
  constexpr int kLocks = 3;
  constexpr int kRounds = 300;
  GatedLock locks[kLocks];
  std::uint64_t counts[kLocks] = {};
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < kLocks; ++i) {
    others.emplace_back([&, i] {
      while (!stop) {
        const GatedLockHolder hold(locks[i]);
        ++counts[i];
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    GatedLock::CloseGate();
    for (GatedLock& lock : locks) lock.AwaitFree();
    for (const std::uint64_t& count : counts) {
      const std::uint64_t before = count;
      if (round % 10 == 0) Linger();
      EXPECT_EQ(count, before);
    }
    GatedLock::OpenGate();
  }
  stop = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace hakmem
