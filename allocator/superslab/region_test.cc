#include "allocator/superslab/region.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Range = VirtualMemory::AddressRange;

constexpr Config kScattered = {.name = "scattered",
                               .inaccessible_empty_blocks = true,
                               .scattered_tables = true};

struct Placed {
  std::size_t zone_bytes;
  std::map<Address, Address> windows;  // from first address to the one beyond
};

// Everything the region has laid out.
Placed WindowsOf(const Region& region) {
  const Address fine = region.fine().view().base;
  Placed placed;
  placed.zone_bytes = region.coarse().view().base - fine;
  EXPECT_EQ(region.windows()[0].begin, fine);
  EXPECT_EQ(region.windows()[0].begin + region.windows()[0].bytes,
            region.huge().begin + region.huge().bytes);
  for (unsigned i = 0; i < Region::kWindows; ++i) {
    const Region::Window window = region.windows()[i];
    if (window.bytes == 0) continue;
    EXPECT_TRUE(
        placed.windows.emplace(window.begin, window.begin + window.bytes)
            .second);
  }
  return placed;
}

class RegionTest : public testing::TestWithParam<Range> {};

TEST_P(RegionTest, WindowsAreDisjointAndInsideTheRange) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FakeVirtualMemory memory(seed);
    memory.SetRegionRange(GetParam());
    Region region;
    EXPECT_FALSE(region.placed());
    region.Place(memory, seed % 2 == 0 ? kScattered : kRelease);
    ASSERT_TRUE(region.placed());
    EXPECT_EQ(memory.mapped_bytes(), 0U);
    const Placed placed = WindowsOf(region);
    Address end = GetParam().begin;
    for (const auto& [begin, window_end] : placed.windows) {
      // What lies between two windows stays unmapped.
      EXPECT_GE(begin, end + (end == GetParam().begin ? 0 : kSuperSlabBytes));
      EXPECT_GT(window_end, begin);
      EXPECT_EQ(begin % memory.PageBytes(), 0U);
      end = window_end;
    }
    EXPECT_LE(end, GetParam().end);
  }
}

TEST_P(RegionTest, WindowsScaleWithTheRange) {
  FakeVirtualMemory memory;
  memory.SetRegionRange(GetParam());
  Region region;
  region.Place(memory);
  const Placed placed = WindowsOf(region);
  const std::size_t range_bytes = GetParam().end - GetParam().begin;
  if (range_bytes == 256 * kGiB) {
    // All of a machine's memory, whatever it is used for.
    EXPECT_GE(placed.zone_bytes, 56 * kGiB);
    EXPECT_GE(region.huge().bytes, 84 * kGiB);
    return;
  }
  EXPECT_GE(placed.zone_bytes, std::min(range_bytes / 25, 4096 * kGiB));
  EXPECT_LE(placed.zone_bytes, range_bytes / 12);
  EXPECT_EQ(region.huge().bytes, 4 * placed.zone_bytes);
}

// What aarch64 leaves with 39 bits, for a machine of 32 GiB.
TEST(RegionNarrowTest, AZoneHoldsAMachinesMemory) {
  for (const Config* config : {&kRelease, &kDebug}) {
    FakeVirtualMemory memory;
    memory.SetRegionRange({12 * 16 * kGiB, 21 * 16 * kGiB});
    Region region;
    region.Place(memory, *config);
    EXPECT_GE(std::size_t{region.fine().capacity_frames()} * kSuperSlabBytes,
              31 * kGiB);
    EXPECT_GE(std::size_t{region.coarse().capacity_frames()} * kSuperSlabBytes,
              31 * kGiB);
    EXPECT_GE(region.huge().bytes, 47 * kGiB);
  }
}

TEST_P(RegionTest, BaseIsRandom) {
  std::set<Address> bases;
  std::set<Address> tables;
  constexpr std::uint64_t kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeVirtualMemory memory(seed);
    memory.SetRegionRange(GetParam());
    Region region;
    region.Place(memory);
    bases.insert(region.fine().view().base);
    tables.insert(region.heap_window(0).begin - region.fine().view().base);
  }
  EXPECT_GT(bases.size(), kSeeds / 2);
  EXPECT_GT(tables.size(), kSeeds / 2);
}

// No window tells where another is.
TEST_P(RegionTest, TablesAreScattered) {
  constexpr std::uint64_t kSeeds = 20;
  std::set<std::size_t> distances[Region::kWindows];
  std::set<bool> before_blocks;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeVirtualMemory memory(seed);
    memory.SetRegionRange(GetParam());
    Region region;
    region.Place(memory, kScattered);
    for (unsigned i = 0; i < Region::kWindows; ++i) {
      const Address other = region.windows()[(i + 1) % Region::kWindows].begin;
      distances[i].insert(region.windows()[i].begin - other);
    }
    before_blocks.insert(region.windows()[1].begin < region.windows()[0].begin);
  }
  for (const auto& seen : distances) EXPECT_GT(seen.size(), kSeeds / 2);
  EXPECT_EQ(before_blocks.size(), 2U);
}

TEST_P(RegionTest, EveryZoneCanBeUsed) {
  FakeVirtualMemory memory;
  // Where this build may map; as long as the parameter if possible.
  const Range here = memory.RegionRange();
  const std::size_t bytes =
      std::min(GetParam().end - GetParam().begin, here.end - here.begin);
  memory.SetRegionRange({here.begin, here.begin + bytes});
  Region region;
  region.Place(memory);
  ASSERT_EQ(region.fine().Extend(memory, 1).first, 0U);
  ASSERT_EQ(region.coarse().Extend(memory, 1).first, 0U);
  region.fine().CheckInvariants();
  region.coarse().CheckInvariants();
  EXPECT_EQ(region.fine().granule_shift(), kFineGranuleShift);
  EXPECT_EQ(region.coarse().granule_shift(), kCoarseGranuleShift);
  for (const Region::Window window :
       {region.huge(), region.huge_tables(), region.heap_window(0),
        region.heap_window(1), region.heap_window(2)}) {
    EXPECT_TRUE(memory.MapAt(window.begin, memory.PageBytes()).ok());
    EXPECT_TRUE(memory
                    .MapAt(window.begin + window.bytes - memory.PageBytes(),
                           memory.PageBytes())
                    .ok());
  }
}

// Whether nothing of the region lies in [begin, end).
bool KeepsClearOf(const Region& region, Address begin, Address end) {
  for (const auto& [first, window_end] : WindowsOf(region).windows) {
    if (first < end && begin < window_end) return false;
  }
  return true;
}

// As under valgrind, which keeps its own memory in the middle of the range, and
// maps more of it from its first call on.
TEST(RegionPlaceTest, KeepsClearOfWhatIsInTheWayAndGrows) {
  const Address begin = LinuxVirtualMemory().RegionRange().begin;
  constexpr std::size_t kRangeBytes = 36 * kGiB;
  constexpr std::size_t kGrowthBytes = 256 * kMiB;
  const Address taken = begin + 16 * kGiB;
  const Address taken_end = taken + 64 * kMiB;
  for (const Config* config : {&kRelease, &kScattered}) {
    int clear_without = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Region free_region;
      FakeVirtualMemory free_memory(seed);
      free_memory.SetRegionRange({begin, begin + kRangeBytes});
      free_region.Place(free_memory, *config);
      clear_without += KeepsClearOf(free_region, taken, taken_end);
      Region region;
      FakeVirtualMemory memory(seed);
      memory.SetRegionRange({begin, begin + kRangeBytes});
      ASSERT_TRUE(memory.MapAt(taken, taken_end - taken).ok());
      region.Place(memory, *config);
      EXPECT_TRUE(
          KeepsClearOf(region, taken - kGrowthBytes, taken_end + kGrowthBytes));
    }
    EXPECT_LT(clear_without, 40);  // it was in the way
  }
}

TEST(RegionPlaceTest, TakesAPlaceWhenSomethingIsInTheWayEverywhere) {
  const Address begin = LinuxVirtualMemory().RegionRange().begin;
  FakeVirtualMemory memory;
  memory.SetRegionRange({begin, begin + 36 * kGiB});
  for (Address at = begin; at < begin + 36 * kGiB; at += kGiB) {
    ASSERT_TRUE(memory.MapAt(at, memory.PageBytes()).ok());
  }
  Region region;
  region.Place(memory);
  ASSERT_TRUE(region.placed());
  EXPECT_NE(region.fine().Extend(memory, 1).first, kNoFrame);
}

// x86-64, under ThreadSanitizer, 39 address bits, a small one, an odd one.
INSTANTIATE_TEST_SUITE_P(
    Ranges, RegionTest,
    testing::Values(Range{0x1000'0000'0000, 0x5000'0000'0000},
                    Range{0x0080'0000'0000, 0x0180'0000'0000},
                    Range{0x0010'0000'0000, 0x0050'0000'0000},
                    Range{0x1000'0000'0000, 0x1000'6020'0000},
                    Range{0x1000'0000'1000, 0x1007'1234'5000}));

// Each process begins with it.
TEST(RegionPlaceTest, LooksOnceWhereNothingLies) {
  for (const Config* config : {&kRelease, &kScattered}) {
    FakeVirtualMemory memory;
    Region region;
    region.Place(memory, *config);
    EXPECT_EQ(memory.looks(), 1U);
  }
}

}  // namespace
}  // namespace hakmem
