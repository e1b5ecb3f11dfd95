#include "allocator/process/thread_identity.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

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
    ForgetIdentity();
    const ThreadIdentity own = CurrentIdentity(kSecondNs);
    _exit(own.process_id == getpid() && own.thread_id == gettid() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hakmem
