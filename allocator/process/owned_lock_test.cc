#include "allocator/process/owned_lock.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <new>
#include <thread>
#include <vector>

#include "allocator/platform/fake_sandbox.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// The analysis cannot follow a lock through googletest's macros.
bool Take(OwnedLock& lock) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  return lock.Lock();
}
void Give(OwnedLock& lock) ABSL_NO_THREAD_SAFETY_ANALYSIS { lock.Unlock(); }

TEST(OwnedLock, TellsItsHolder) {
  static constinit OwnedLock lock;
  errno = 77;
  ASSERT_TRUE(Take(lock));
  EXPECT_FALSE(Take(lock));
  Give(lock);
  ASSERT_TRUE(Take(lock));
  Give(lock);
  EXPECT_EQ(errno, 77);
}

TEST(OwnedLock, LetsOneThreadInAtATime) {
  OwnedLock lock;
  int count = 0;
  constexpr int kRounds = 20'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&lock, &count] {
      for (int round = 0; round < kRounds; ++round) {
        if (!Take(lock)) return;
        ++count;
        Give(lock);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * kRounds);
}

TEST(OwnedLock, IsFreeAfterAReset) {
  OwnedLock lock;
  ASSERT_TRUE(Take(lock));
  lock.ResetAfterFork();
  bool taken = false;
  std::thread([&] {
    taken = Take(lock);
    if (taken) Give(lock);
  }).join();
  EXPECT_TRUE(taken);
}

constinit OwnedLock g_lock;
volatile std::sig_atomic_t g_refused = 0;

TEST(OwnedLock, ASignalHandlerDoesNotWaitForItsOwnThread) {
  std::signal(SIGUSR1, [](int) { g_refused = Take(g_lock) ? 0 : 1; });
  ASSERT_TRUE(Take(g_lock));
  std::raise(SIGUSR1);
  EXPECT_EQ(g_refused, 1);
  Give(g_lock);
  std::signal(SIGUSR1, SIG_DFL);
}

// A filter of system calls may refuse each thread its id.
// In a fork's child, whose page would be copied.
TEST(OwnedLock, AFreeOneIsNotWrittenTo) {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const lock = new (page) OwnedLock;
  ASSERT_EQ(mprotect(page, bytes, PROT_READ), 0);
  lock->ResetAfterFork();
  munmap(page, bytes);
}

TEST(OwnedLock, TellsItsHolderWithoutTheKernel) {
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidSystemCalls({SYS_gettid})) _exit(1);
    OwnedLock lock;
    if (!Take(lock)) _exit(2);
    _exit(Take(lock) ? 3 : 0);  // or it waits for itself
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hakmem
