// HAKMEM_BACKGROUND: when its thread starts.

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "allocator/process/test_waits.h"
#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::size_t ThreadCount() {
  struct stat threads = {};
  EXPECT_EQ(stat("/proc/self/task", &threads), 0);
  return threads.st_nlink - 2;
}

// Ends the process with 0 if `allocate` has it get its thread.
template <typename Allocate>
void ExpectThreadOnDemand(Allocate allocate) {
  const int status = RunInFork([allocate] {
    const std::size_t before = ThreadCount();  // 1, or an emulator's, too
    for (int i = 0; i < 1000; ++i) {
      if (Opaque(allocate(1000)) == nullptr) _exit(3);
    }
    if (ThreadCount() != before + 1) _exit(4);
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

TEST(Background, DISABLED_AnyCallStartsTheThread) {
  ExpectThreadOnDemand([](std::size_t size) { return malloc(size); });
  ExpectThreadOnDemand([](std::size_t size) { return calloc(1, size); });
  ExpectThreadOnDemand(
      [](std::size_t size) { return aligned_alloc(64, size); });
  ExpectThreadOnDemand([](std::size_t size) {
    void* block = nullptr;
    return posix_memalign(&block, 64, size) == 0 ? block : nullptr;
  });
}

TEST(Background, StartsWithAnyCall) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Background.DISABLED_AnyCallStartsTheThread",
                .environment = {"HAKMEM_BACKGROUND=2"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

void AllocateALot() {
  for (int i = 0; i < 1000; ++i) {
    if (Opaque(malloc(1000)) == nullptr) _exit(3);
  }
}

void ExpectThreadBesideASecondOne() {
  const std::size_t before = ThreadCount();
  AllocateALot();
  if (ThreadCount() != before) _exit(4);
  std::atomic<bool> allocated{false};
  std::atomic<bool> counted{false};
  std::thread second([&] {
    AllocateALot();
    allocated.store(true);
    AwaitThat([&] { return counted.load(); });
  });
  AwaitThat([&] { return allocated.load(); });
  if (ThreadCount() != before + 2) _exit(5);
  counted.store(true);
  second.join();
}

TEST(Background, DISABLED_SecondThreadsStartTheThread) {
  ExpectThreadBesideASecondOne();
  // The child is of one thread again.
  const int status = RunInFork(&ExpectThreadBesideASecondOne);
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

TEST(Background, StartsBesideASecondThread) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Background.DISABLED_SecondThreadsStartTheThread",
                .environment = {"HAKMEM_BACKGROUND=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST(Background, DISABLED_EntersAUserNamespace) {
  AllocateALot();
  const int error = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
  std::printf("unshare: %d\n", error);
}

// As without the option, also where the kernel has no user namespaces.
TEST(Background, LeavesUserNamespacesToProgramsOfOneThread) {
  const std::string test = "Background.DISABLED_EntersAUserNamespace";
  const ChildResult without = RunChild({.test = test});
  const ChildResult with =
      RunChild({.test = test, .environment = {"HAKMEM_BACKGROUND=1"}});
  const std::string line = FirstLineWith(without.output, "unshare: ");
  EXPECT_NE(line, "") << without.output;
  EXPECT_EQ(FirstLineWith(with.output, "unshare: "), line);
}

}  // namespace
}  // namespace hakmem
