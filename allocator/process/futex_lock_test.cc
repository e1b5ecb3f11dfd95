#include "allocator/process/futex_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "allocator/platform/libc_functions.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {

class FutexLockPeer {
 public:
  // As if so many threads more had been named.
  static void Pass(std::uint64_t count) {
    FutexLock::names_.fetch_add(count, std::memory_order_relaxed);
  }
  // The halves of a release by a thread that others wait for.
  static void BeginUnlock(FutexLock& lock) {
    lock.state_ = FutexLock::kContended;
  }
  static void EndUnlock(FutexLock& lock) { lock.UnlockSlow(); }
};
namespace {

// Usable before any constructor has run.
constinit FutexLock g_lock;

TEST(FutexLock, IsAWordAndTwoCounts) { EXPECT_EQ(sizeof(FutexLock), 24u); }

TEST(FutexLock, ExcludesOthers) {
  EXPECT_FALSE(g_lock.IsHeld());
  g_lock.Lock();
  EXPECT_TRUE(g_lock.IsHeld());
  bool taken = false;
  std::thread other([&taken] {
    if (g_lock.TryLock()) {
      taken = true;
      g_lock.Unlock();
    }
  });
  other.join();
  EXPECT_FALSE(taken);
  g_lock.Unlock();
  EXPECT_FALSE(g_lock.IsHeld());
}

TEST(FutexLock, TryLockTakesAFreeLock) {
  if (!g_lock.TryLock()) FAIL();
  EXPECT_TRUE(g_lock.IsHeld());
  g_lock.Unlock();
}

TEST(FutexLock, HolderReleasesAtTheEndOfItsScope) {
  {
    const FutexLockHolder hold(g_lock);
    EXPECT_TRUE(g_lock.IsHeld());
  }
  EXPECT_FALSE(g_lock.IsHeld());
}

TEST(FutexLock, ResetFreesALockWhoseHolderIsGone) {
  std::thread holder([]() ABSL_NO_THREAD_SAFETY_ANALYSIS { g_lock.Lock(); });
  holder.join();
  EXPECT_TRUE(g_lock.IsHeld());
  g_lock.ResetAfterFork();
  if (!g_lock.TryLock()) FAIL();
  g_lock.Unlock();
}

// A waiter that sleeps in the kernel is woken, and errno is what it was.
TEST(FutexLock, WakesASleeper) {
  std::atomic<int> waiter_errno{0};
  g_lock.Lock();
  TestThread waiter([&] {
    errno = 1234;
    const FutexLockHolder hold(g_lock);
    waiter_errno = errno;
  });
  waiter.AwaitWaitFor(g_lock);
  EXPECT_EQ(waiter_errno, 0);
  errno = 4321;
  g_lock.Unlock();
  EXPECT_EQ(errno, 4321);
  waiter.Join();
  EXPECT_EQ(waiter_errno, 1234);
}

// However it got there: whether it spins or sleeps, a call counts once.
void CountsEachWaitOnce() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  for (int i = 0; i < 3; ++i) {
    lock.Lock();
    lock.Unlock();
  }
  EXPECT_EQ(lock.waits(), 0u);
  EXPECT_EQ(lock.wait_ns(), 0u);
  const std::uint64_t begin = MonotonicNs();
  for (std::uint64_t waits = 1; waits <= 3; ++waits) {
    const std::uint64_t before = lock.wait_ns();
    lock.Lock();
    std::thread waiter([&lock] { const FutexLockHolder hold(lock); });
    // Nobody but a waiter marks the lock; it sleeps from then on.
    while (!lock.IsWaitedFor()) std::this_thread::yield();
    EXPECT_EQ(lock.waits(), waits - 1);
    lock.Unlock();
    waiter.join();
    EXPECT_EQ(lock.waits(), waits);
    EXPECT_GT(lock.wait_ns(), before);
  }
  EXPECT_LE(lock.wait_ns(), MonotonicNs() - begin);
}
TEST(FutexLock, CountsEachWaitOnce) { CountsEachWaitOnce(); }

void CountsNoWaitOfWhoOnlyTries() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  lock.Lock();
  std::thread([&lock]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    EXPECT_FALSE(lock.TryLock());
  }).join();
  lock.Unlock();
  EXPECT_EQ(lock.waits(), 0u);
}
TEST(FutexLock, CountsNoWaitOfWhoOnlyTries) { CountsNoWaitOfWhoOnlyTries(); }

// The thread that forks may allocate meanwhile; nobody else may.
void IsLentToTheThreadThatForks() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  const auto others_get_it = [&lock] {
    bool taken = false;
    std::thread([&] {
      if (!lock.TryLock()) return;
      taken = true;
      lock.Unlock();
    }).join();
    return taken;
  };
  lock.LockForFork();
  for (int i = 0; i < 2; ++i) {
    lock.Lock();
    EXPECT_FALSE(others_get_it());
    i == 0 ? lock.Unlock() : lock.UnlockForOthers();
    EXPECT_TRUE(lock.IsHeld());
    EXPECT_FALSE(others_get_it());
  }
  lock.UnlockAfterFork();
  EXPECT_FALSE(lock.IsHeld());
  EXPECT_TRUE(others_get_it());
}
TEST(FutexLock, IsLentToTheThreadThatForks) { IsLentToTheThreadThatForks(); }

// Nor may one that has forked before, while who forks has not said so yet: here
// it has, but the other has said so of itself since.
void IsNotLentToAThreadThatHasForked() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  lock.LockForFork();
  std::atomic<bool> taken{false};
  std::thread other([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    FutexLock own;
    own.LockForFork();
    own.UnlockAfterFork();
    lock.Lock();
    taken = true;
    lock.Unlock();
  });
  while (!lock.IsWaitedFor() && !taken) std::this_thread::yield();
  EXPECT_FALSE(taken);
  lock.UnlockAfterFork();
  other.join();
  EXPECT_TRUE(taken);
}
TEST(FutexLock, IsNotLentToAThreadThatHasForked) {
  IsNotLentToAThreadThatHasForked();
}

// A fork in a signal handler that interrupted the holder leaves the lock to it.
void StaysWithTheThreadThatForksWhileItHoldsIt()
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  FutexLock::Identify();
  lock.Lock();
  lock.LockForFork();
  lock.UnlockAfterFork();
  EXPECT_TRUE(lock.IsHeld());
  const pid_t child = fork();
  if (child == 0) {
    lock.ResetAfterFork();
    const bool held = lock.IsHeld();
    lock.Unlock();
    _exit(held && !lock.IsHeld() && FutexLock::Self() != 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  lock.Unlock();
  EXPECT_FALSE(lock.IsHeld());
}
TEST(FutexLock, StaysWithTheThreadThatForksWhileItHoldsIt) {
  StaysWithTheThreadThatForksWhileItHoldsIt();
}

void WaitersSurviveAFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  lock.LockForFork();
  std::atomic<bool> done{false};
  TestThread waiter([&] {
    const FutexLockHolder hold(lock);
    done = true;
  });
  waiter.AwaitWaitFor(lock);
  lock.Lock();
  lock.Unlock();
  EXPECT_FALSE(done);
  lock.UnlockAfterFork();
  waiter.Join();
  EXPECT_TRUE(done);
}
TEST(FutexLock, WaitersSurviveAFork) { WaitersSurviveAFork(); }

void TellsWhoWaitsForItself() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock::Identify();
  const pid_t child = fork();
  if (child == 0) {
    FutexLock::OnReentry([] { _exit(7); });
    static constinit FutexLock lock;
    lock.Lock();
    lock.Lock();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
TEST(FutexLock, TellsWhoWaitsForItself) { TellsWhoWaitsForItself(); }

// Before those who wait are woken, a signal handler may come that interrupted
// the release, and take the lock. It has it until it releases it.
void IsFreeBeforeOthersAreWoken(bool for_fork) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock lock;
  FutexLockPeer::BeginUnlock(lock);
  TestThread handler([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for_fork ? lock.LockForFork() : lock.Lock();
    FutexLockPeer::EndUnlock(lock);
    EXPECT_TRUE(lock.IsHeld());
    for_fork ? lock.UnlockAfterFork() : lock.Unlock();
  });
  handler.AwaitWaitFor(lock);
  EXPECT_TRUE(handler.has_ended());
  FutexLockPeer::EndUnlock(lock);
  handler.Join();
  EXPECT_FALSE(lock.IsHeld());
}
TEST(FutexLock, IsFreeBeforeOthersAreWoken) {
  IsFreeBeforeOthersAreWoken(/*for_fork=*/false);
  IsFreeBeforeOthersAreWoken(/*for_fork=*/true);
}

// As many threads apart as there are low halves of names.
TEST(FutexLock, NamesNeverComeAgain) {
  constexpr std::uint64_t kLowNames = (1 << 30) - 2;
  std::set<std::uint64_t> names;
  for (int i = 0; i < 8; ++i) {
    std::uint64_t name = 0;
    std::thread([&] {
      FutexLock::Identify();
      name = FutexLock::Self();
    }).join();
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name % 4, 0u);
    EXPECT_NE(static_cast<std::uint32_t>(name), 0u);
    FutexLockPeer::Pass(kLowNames - 1);
  }
}

// The guarded numbers are plain, so a hole in the lock loses counts, and is a
// race that ThreadSanitizer reports.
TEST(FutexLock, Stress) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 20000;
  std::uint64_t count = 0;
  std::uint64_t shadow = 0;
  int inside = 0;
  bool overlap = false;
  const auto enter = [&] {
    overlap |= inside != 0;
    ++inside;
    ++count;
    ++shadow;
    --inside;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        if ((round + i) % 3 == 0) {
          while (!g_lock.TryLock()) std::this_thread::yield();
          enter();
          // Others have come while it is held for long.
          if (round % 1000 < 3) Linger();
          round % 2 == 0 ? g_lock.Unlock() : g_lock.UnlockForOthers();
        } else {
          const FutexLockHolder hold(g_lock);
          enter();
          // Now and then held for long, so that others sleep.
          if (round % 1000 == 0) Linger();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, std::uint64_t{kThreads} * kRounds);
  EXPECT_EQ(shadow, count);
  EXPECT_FALSE(overlap);
  EXPECT_FALSE(g_lock.IsHeld());
}

}  // namespace
}  // namespace hakmem
