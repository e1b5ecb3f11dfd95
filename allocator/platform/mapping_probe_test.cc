#include "allocator/platform/mapping_probe.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "allocator/platform/proc_reader.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(MappingProbeTest, SaysNoInAnOrdinaryProcess) {
  errno = 1234;
  EXPECT_FALSE(MappingsUsedUp());
  EXPECT_EQ(errno, 1234);
}

// Not even when no address may be added; and it needs none.
TEST(MappingProbeTest, OtherLimitsDoNotMatter) {
  EXPECT_EXIT(
      {
        rlimit none = {};
        setrlimit(RLIMIT_AS, &none);
        void* const got =
            mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _exit(got == MAP_FAILED && !MappingsUsedUp() ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

// Maps pages that the kernel cannot join, until it refuses. False: the probe
// has said something else.
bool UseUpMappings() {
  const auto page = static_cast<std::size_t>(getpagesize());
  for (int protection = PROT_READ;; protection ^= PROT_READ) {
    const bool used_up = MappingsUsedUp();
    const bool refused = mmap(nullptr, page, protection,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
    if (refused != used_up) return false;
    if (refused) return true;
  }
}

TEST(MappingProbeTest, SaysYesExactlyWhenTheKernelRefuses) {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  ProcReader().ReadNumber("/proc/sys/vm/max_map_count", limit);
  if (limit > 300000) GTEST_SKIP() << "vm.max_map_count is " << limit;
  EXPECT_EXIT(_exit(UseUpMappings() ? 42 : 1), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace hakmem
