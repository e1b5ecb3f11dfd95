// Where the region's range lies, beside what a program reserves.
#include <sys/mman.h>

#include <cstddef>
#include <ios>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// A program that reserves much gets the addresses that the kernel has from the
// top down. hakmem's come last.
TEST(RegionRangeTest, ReservationsComeBeforeIt) {
  constexpr std::size_t kBytes = 1024 * kGiB;
  LinuxVirtualMemory memory;
  const auto range = memory.RegionRange();
  std::vector<void*> reserved;
  const auto reserve = [&] {
    reserved.push_back(mmap(nullptr, kBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                            0));
    return reserved.back() != MAP_FAILED;
  };
  // 47 bits, and the kernel begins near the top.
  const bool is_usual =
      !kAddressSanitizer && !kThreadSanitizer && reserve() &&
      reinterpret_cast<Address>(reserved[0]) / kBytes - 100 < 28;
  while (is_usual && reserved.size() < 60 && reserve()) continue;
  const bool is_taken = memory.IsTaken(range.begin, range.end - range.begin);
  const std::size_t count = reserved.size();
  for (void* const begin : reserved) munmap(begin, kBytes);
  if (!is_usual) GTEST_SKIP() << "another layout, limited addresses";
  EXPECT_EQ(count, 60U);
  EXPECT_FALSE(is_taken);
}

// CLISP maps its heap over whatever lies between 16 and 32 TiB, from both ends.
TEST(RegionRangeTest, LeavesClispItsHeap) {
  if (kAddressSanitizer) GTEST_SKIP() << "another range";
  LinuxVirtualMemory memory;
  const auto range = memory.RegionRange();
  EXPECT_TRUE(range.end <= 16 * 1024 * kGiB || range.begin >= 32 * 1024 * kGiB)
      << std::hex << range.begin;
}

}  // namespace
}  // namespace hakmem
