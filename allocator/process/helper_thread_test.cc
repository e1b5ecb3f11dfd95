#include "allocator/process/helper_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "allocator/base/sanitizer.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/process/test_waits.h"
#include "allocator/process/thread_hooks.h"
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
  AwaitThat([] { return g_done.load(std::memory_order_acquire); });
  EXPECT_EQ(g_seen.name, "hakmem");
  EXPECT_FALSE(g_seen.takes_signals);
  // The caller's own mask is as it was.
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

// malloc and free start helpers, and succeed without them.
TEST(HelperThreadTest, KeepsErrnoWhereThereIsNoThread) {
  if (kAddressSanitizer || kThreadSanitizer) {
    GTEST_SKIP() << "it maps memory while a thread is made";
  }
  const pid_t child = fork();
  if (child == 0) {
    // Longer than stacks that libc has kept.
    pthread_attr_t longer;
    constexpr rlimit kNone = {.rlim_cur = 0, .rlim_max = 0};
    if (pthread_attr_init(&longer) != 0 ||
        pthread_attr_setstacksize(&longer, std::size_t{64} << 20) != 0 ||
        pthread_setattr_default_np(&longer) != 0 ||
        setrlimit(RLIMIT_AS, &kNone) != 0) {
      _exit(1);
    }
    errno = 1234;
    if (StartHelperThread([] {}) == 0) _exit(2);
    _exit(errno == 1234 ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// What a child does, on its first thread, before that leaves by pthread_exit.
void BecomeHelpersAlone() {
  static char armed = 0;
  if (!ArmThreadExit(&armed)) _exit(1);
  ForgetHelpersAfterFork();
  for (int i = 0; i < 2; ++i) {
    if (StartHelperThread([] {
          while (SleepAsHelper(1)) continue;
        }) != 0) {
      _exit(2);
    }
  }
  // Ends after the first thread.
  std::thread([] {
    AwaitThat([] { return StateOf(getpid()) == 'Z'; });
  }).detach();
}

// The status of a child whose first thread leaves, with `prepare` before.
int StatusOfHelpersAlone(bool (*prepare)()) {
  int status = -1;
  // In the child, the thread that forks is the first.
  std::thread([&status, prepare] {
    const pid_t child = fork();
    if (child == 0) {
      if (!prepare()) _exit(3);
      return BecomeHelpersAlone();
    }
    // For ever, if it stays.
    waitpid(child, &status, 0);
  }).join();
  return status;
}

// A process ends when its last thread does, and a helper is none.
TEST(HelperThreadTest, DoesNotKeepAProcess) {
  if (kThreadSanitizer) GTEST_SKIP() << "it has a thread of its own";
  ASSERT_EQ(InstallThreadExitHook([](void*) { NoteThreadExit(); }),
            HookState::kInstalled);
  const int status = StatusOfHelpersAlone([] { return true; });
  // LeakSanitizer looks at a child that ends, and has an exit code of its own.
  EXPECT_TRUE(kAddressSanitizer ? WIFEXITED(status) : status == 0) << status;
}

// As in a root without /proc.
TEST(HelperThreadTest, DoesNotKeepAProcessWhoseThreadsCannotBeCounted) {
  if (kThreadSanitizer) GTEST_SKIP() << "it has a thread of its own";
  ASSERT_EQ(InstallThreadExitHook([](void*) { NoteThreadExit(); }),
            HookState::kInstalled);
  int status =
      StatusOfHelpersAlone([] { return ForbidSystemCalls({SYS_newfstatat}); });
  EXPECT_TRUE(kAddressSanitizer ? WIFEXITED(status) : status == 0) << status;
  status = StatusOfHelpersAlone([] { return ForbidSystemCalls({SYS_gettid}); });
  EXPECT_TRUE(kAddressSanitizer ? WIFEXITED(status) : status == 0) << status;
}

// A thread that ends is not taken for the first one, which goes on.
TEST(HelperThreadTest, StaysWithTheFirstThreadWhereThreadIdsAreRefused) {
  if (kThreadSanitizer) GTEST_SKIP() << "it has a thread of its own";
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidSystemCalls({SYS_gettid})) _exit(3);
    TestThread other(&NoteThreadExit);
    other.Join();
    _exit(OnlyHelpersAreLeft() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(HelperThreadTest, TheFirstThreadIsKnownWhereTheProcessIdIsRefused) {
  if (kThreadSanitizer) GTEST_SKIP() << "it has a thread of its own";
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidSystemCalls({SYS_getpid})) _exit(3);
    bool may_other = true;
    TestThread other([&may_other] { may_other = MayBeFirstThread(); });
    other.Join();
    _exit(MayBeFirstThread() && !may_other ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Somebody else is there, or the first thread.
TEST(HelperThreadTest, StaysWithOthers) {
  static std::atomic<int> rounds{0};
  static std::atomic<bool> end{false};
  ASSERT_EQ(StartHelperThread([] {
              while (!end.load() && SleepAsHelper(1)) rounds.fetch_add(1);
            }),
            0);
  AwaitThat([] { return rounds.load() >= 3; });
  EXPECT_FALSE(OnlyHelpersAreLeft());
  end = true;
}

// A thread that is to end goes on to where it lets go of its locks.
TEST(SleepMsTest, IsNoCancellationPoint) {
  bool came_back = false;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* back) -> void* {
                  pthread_cancel(pthread_self());
                  SleepMs(0);  // waits: for no time
                  *static_cast<bool*>(back) = true;
                  pthread_testcancel();
                  return nullptr;
                },
                &came_back),
            0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_TRUE(came_back);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST(SleepMsTest, KeepsErrnoWhereASignalEndsIt) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  struct sigaction before;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const pid_t self = gettid();
  const pthread_t self_thread = pthread_self();
  TestThread waker([self, self_thread] {
    AwaitThat([self] { return SleepsIn(self, SYS_nanosleep); });
    pthread_kill(self_thread, SIGUSR1);
  });
  errno = 1234;
  SleepMs(3'600'000);  // waits: until the signal
  EXPECT_EQ(errno, 1234);
  waker.Join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace hakmem
