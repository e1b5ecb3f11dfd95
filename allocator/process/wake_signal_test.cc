#include "allocator/process/wake_signal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "allocator/platform/libc_functions.h"

namespace hakmem {
namespace {

TEST(WakeSignalTest, AWaitEndsByItself) {
  WakeSignal signal;
  errno = 99;
  const std::uint64_t before_ns = MonotonicNs();
  signal.Wait(1);
  EXPECT_GT(MonotonicNs(), before_ns);
  EXPECT_EQ(errno, 99);
  signal.Wake();  // nobody waits
}

TEST(WakeSignalTest, AWakeEndsAWait) {
  WakeSignal signal;
  std::atomic<bool> woken{false};
  std::thread sleeper([&] {
    signal.Wait(3'600'000);
    woken.store(true, std::memory_order_relaxed);
  });
  // A wake before the wait has no effect; so until one has.
  while (!woken.load(std::memory_order_relaxed)) {
    signal.Wake();
    std::this_thread::yield();
  }
  sleeper.join();
}

TEST(ClockTest, TimeGoesOn) {
  const std::uint64_t first = MonotonicNs();
  const std::uint64_t second = MonotonicNs();
  EXPECT_LE(first, second);
  // After this was written.
  EXPECT_GT(WallClockNs(), std::uint64_t{1'700'000'000'000'000'000});
}

}  // namespace
}  // namespace hakmem
