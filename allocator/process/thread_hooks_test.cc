#include "allocator/process/thread_hooks.h"

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "allocator/base/sanitizer.h"
#include "gtest/gtest.h"

#if defined(__GLIBC__)
// What exit has done for each object; declared in no header.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void __cxa_finalize(void* object);
extern "C" void* __dso_handle;
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace hakmem {
namespace {

// What a thread's destructors did, in order: "H" and the argument's name for
// the hook, other letters for the keys below.
struct Log {
  std::string text;
};

// ThreadSanitizer gives a thread up at the start of libc's last round.
constexpr std::size_t kRounds =
    PTHREAD_DESTRUCTOR_ITERATIONS - (kThreadSanitizer ? 1 : 0);

// Which log a destructor of this thread writes to.
thread_local Log* t_log = nullptr;

char g_first = '1';
char g_second = '2';

void Hook(void* argument) {
  t_log->text += 'H';
  t_log->text += *static_cast<char*>(argument);
}

// A foreign key, whose destructor runs before ours in each round.
class ForeignKey {
 public:
  explicit ForeignKey(void (*destructor)(void*)) {
    EXPECT_EQ(pthread_key_create(&key_, destructor), 0);
  }
  ~ForeignKey() { pthread_key_delete(key_); }
  // Rounds are counted down in the value, which must not be null.
  void Set(std::size_t rounds) const {
    EXPECT_EQ(pthread_setspecific(key_, reinterpret_cast<void*>(rounds)), 0);
  }

 private:
  pthread_key_t key_;
};

const ForeignKey* g_foreign = nullptr;

class ThreadHooksTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(InstallThreadExitHook(&Hook), HookState::kInstalled);
  }

  // What the destructors of a thread did that ran `body`.
  template <typename Body>
  std::string Run(Body body) {
    Log log;
    std::thread thread([&] {
      t_log = &log;
      body();
    });
    thread.join();
    return log.text;
  }
};

TEST_F(ThreadHooksTest, InstallingAgainChangesNothing) {
  EXPECT_EQ(InstallThreadExitHook(&Hook), HookState::kInstalled);
  EXPECT_EQ(Run([] { EXPECT_TRUE(ArmThreadExit(&g_first)); }), "H1");
}

TEST_F(ThreadHooksTest, RunsOnlyForArmedThreads) {
  EXPECT_EQ(Run([] {}), "");
}

TEST_F(ThreadHooksTest, RunsOnceWithTheLastArgument) {
  EXPECT_EQ(Run([] {
              EXPECT_TRUE(ArmThreadExit(&g_first));
              EXPECT_TRUE(ArmThreadExit(&g_second));
            }),
            "H2");
}

TEST_F(ThreadHooksTest, RunsForEachThread) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Run([] { EXPECT_TRUE(ArmThreadExit(&g_first)); }), "H1");
  }
}

TEST_F(ThreadHooksTest, RunsAfterOtherDestructorsOfTheFirstRound) {
  const ForeignKey foreign([](void* rounds) {
    t_log->text += 'f';
    const auto left = reinterpret_cast<std::size_t>(rounds) - 1;
    if (left != 0) g_foreign->Set(left);
  });
  g_foreign = &foreign;
  EXPECT_EQ(Run([&] {
              EXPECT_TRUE(ArmThreadExit(&g_first));
              foreign.Set(2);
            }),
            "fH1f");
}

struct Object {
  ~Object() { t_log->text += 'o'; }
  char used = 0;
};
thread_local Object t_object;

TEST_F(ThreadHooksTest, RunsAfterThreadLocalObjects) {
  EXPECT_EQ(Run([] {
              t_object.used = 1;
              EXPECT_TRUE(ArmThreadExit(&g_first));
            }),
            "oH1");
}

// A destructor that runs after the hook learns that it will not run again.
TEST_F(ThreadHooksTest, RefusesAfterItHasRun) {
  const ForeignKey foreign([](void* rounds) {
    t_log->text += ArmThreadExit(&g_second) ? 'a' : 'r';
    const auto left = reinterpret_cast<std::size_t>(rounds) - 1;
    if (left != 0) g_foreign->Set(left);
  });
  g_foreign = &foreign;
  EXPECT_EQ(Run([&] {
              EXPECT_TRUE(ArmThreadExit(&g_first));
              foreign.Set(kRounds);
            }),
            "aH2" + std::string(kRounds - 1, 'r'));
}

// The thread's first allocation is in a destructor, of any round.
TEST_F(ThreadHooksTest, RunsWhenFirstArmedByADestructor) {
  const ForeignKey foreign([](void* rounds) {
    const auto left = reinterpret_cast<std::size_t>(rounds) - 1;
    if (left != 0) return g_foreign->Set(left);
    t_log->text += ArmThreadExit(&g_first) ? 'a' : 'r';
  });
  g_foreign = &foreign;
  for (std::size_t round = 1; round <= kRounds; ++round) {
    EXPECT_EQ(Run([&] { foreign.Set(round); }), "aH1") << round;
  }
}

std::string* g_fork_log = nullptr;

TEST(ForkHooks, RunAroundFork) {
  std::string log;
  g_fork_log = &log;
  ASSERT_TRUE(InstallForkHooks(
      [] {
        if (g_fork_log != nullptr) *g_fork_log += "prepare ";
      },
      [] {
        if (g_fork_log != nullptr) *g_fork_log += "parent";
      },
      [] {
        if (g_fork_log != nullptr) *g_fork_log += "child";
      }));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(log == "prepare child" ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(log, "prepare parent");
  g_fork_log = nullptr;
}

#if defined(__GLIBC__)
// libc takes an object's handlers away when the object's destructors run.
TEST(ForkHooksDeathTest, OutliveTheLibrarysDestructors) {
  EXPECT_EXIT(
      {
        constexpr auto kNothing = [] {};
        InstallForkHooks([] { _exit(42); }, kNothing, kNothing);
        __cxa_finalize(&__dso_handle);
        fork();
        _exit(1);
      },
      testing::ExitedWithCode(42), "");
}
#endif

}  // namespace
}  // namespace hakmem
