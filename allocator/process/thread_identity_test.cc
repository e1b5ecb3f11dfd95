#include "allocator/process/thread_identity.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "allocator/base/call_filter.h"
#include "allocator/base/sanitizer.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/process/process.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

TEST(ThreadIdentity, AsksTheKernelOnceInAnInterval) {
  std::thread([] {
    pthread_setname_np(pthread_self(), "first");
    const ThreadIdentity first = CurrentIdentity(kSecondNs);
    EXPECT_EQ(first.process_id, getpid());
    EXPECT_EQ(first.thread_id, gettid());
    EXPECT_STREQ(first.thread_name, "first");
    pthread_setname_np(pthread_self(), "second");
    EXPECT_STREQ(
        CurrentIdentity(kSecondNs + kIdentityIntervalNs - 1).thread_name,
        "first");
    const ThreadIdentity second =
        CurrentIdentity(kSecondNs + kIdentityIntervalNs);
    EXPECT_STREQ(second.thread_name, "second");
    EXPECT_EQ(second.thread_id, gettid());
  }).join();
}

TEST(ThreadIdentity, EachThreadHasItsOwn) {
  const int other = CurrentIdentity(kSecondNs).thread_id;
  std::thread([=] {
    EXPECT_EQ(CurrentIdentity(kSecondNs).thread_id, gettid());
    EXPECT_NE(CurrentIdentity(kSecondNs).thread_id, other);
  }).join();
}

TEST(ThreadIdentity, AChildForgetsItsParents) {
  CurrentIdentity(kSecondNs);
  const pid_t child = fork();
  if (child == 0) {
    NoteProcess();
    const ThreadIdentity own = CurrentIdentity(kSecondNs);
    _exit(own.process_id == getpid() && own.thread_id == gettid() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Under a filter that may kill for them, the kernel is asked neither getpid nor
// gettid, nor for the name.
TEST(ThreadIdentity, UnderAFilterItIsWhatLibcHasRecorded) {
  static void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (libc == nullptr || dlsym(libc, "_thread_db_pthread_tid") == nullptr) {
    GTEST_SKIP() << "a libc that tells debuggers nothing";
  }
  if (kAddressSanitizer || kThreadSanitizer) {
    GTEST_SKIP() << "the sanitizer itself asks at each thread's start";
  }
  const auto identify = [] {
    FindLibcFunctions([](const char* name) {
      return reinterpret_cast<std::uintptr_t>(dlsym(libc, name));
    });
    NoteProcess();
    const pid_t process = getpid();
    g_filter.store(Filter::kAtStart, std::memory_order_relaxed);
    if (!ForbidSystemCalls({SYS_getpid, SYS_gettid, SYS_prctl}, kKills)) {
      _exit(0);
    }
    const ThreadIdentity own = CurrentIdentity(kSecondNs);
    bool good = own.process_id == process && own.thread_id == process &&
                KnownThreadId() == process;
    std::thread([&] {
      const ThreadIdentity other = CurrentIdentity(kSecondNs);
      good = good && other.process_id == process && other.thread_id > process &&
             KnownThreadId() == other.thread_id;
    }).join();
    _exit(good ? 0 : 1);
  };
  EXPECT_EXIT(identify(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hakmem
