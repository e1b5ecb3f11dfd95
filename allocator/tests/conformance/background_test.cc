// HAKMEM_BACKGROUND=1: when its thread starts.

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

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
                .environment = {"HAKMEM_BACKGROUND=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

}  // namespace
}  // namespace hakmem
