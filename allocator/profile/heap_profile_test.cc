#include "allocator/profile/heap_profile.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "allocator/base/units.h"
#include "allocator/base/weak_random.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/profile/heap_tables.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kMean = 512 * 1024;

CallStack StackOf(std::uintptr_t place, unsigned depth = 3) {
  CallStack stack;
  stack.count = depth;
  for (unsigned i = 0; i < depth; ++i) stack.addresses[i] = place + i;
  return stack;
}

const void* BlockAt(std::uint64_t number) {
  return reinterpret_cast<const void*>(0x10000000 + 16 * number);
}

class HeapProfileTest : public testing::Test {
 protected:
  HeapProfileTest() {
    profile_.Start(kMean, /*stacks=*/true,
                   {memory_.RegionRange().begin, 64 * kMiB});
  }
  // The site whose innermost address is `place`.
  ProfileSite SiteOf(std::uintptr_t place) {
    ProfileSite site;
    for (std::uint32_t i = 0; profile_.CopySite(i, site); ++i) {
      if (site.stack.addresses[0] == place) return site;
    }
    ADD_FAILURE() << "no site " << place;
    return site;
  }

  FakeVirtualMemory memory_;
  HeapProfile profile_{memory_};
};

// As another process does.
template <typename T>
T Read(const void* there) {
  T value;
  std::memcpy(&value, there, sizeof(value));
  return value;
}

TEST_F(HeapProfileTest, OthersFindTheTables) {
  for (unsigned i = 0; i < 3; ++i) profile_.Add(BlockAt(i), 16, 0, StackOf(7));
  profile_.Add(BlockAt(9), 16, 0, StackOf(100, 2));
  const HeapTablesDescriptor at = profile_.Describe("1.2.3", "release");
  EXPECT_STREQ(at.magic, "hakheap");
  EXPECT_EQ(at.version, 1U);
  EXPECT_EQ(at.descriptor_bytes, 112U);
  EXPECT_EQ(offsetof(HeapTablesDescriptor, sequence), 40U);
  EXPECT_EQ(offsetof(HeapTablesDescriptor, variant), 96U);
  EXPECT_EQ(offsetof(HeapTablesDescriptor, variances_offset), 104U);
  EXPECT_EQ(at.can_sample, 1U);
  EXPECT_EQ(Read<std::uint64_t>(at.mean_bytes), kMean);
  EXPECT_EQ(Read<std::uint64_t>(at.totals), 4U);
  EXPECT_EQ(Read<std::uint64_t>(at.lost_samples), 0U);
  ASSERT_EQ(Read<std::uint32_t>(at.site_count), 2U);
  const char* site = Read<const char*>(at.sites) + at.site_bytes;
  EXPECT_EQ(Read<std::uint64_t>(site), 1U);
  EXPECT_EQ(Read<std::uint32_t>(site + at.frames_offset), 2U);
  EXPECT_EQ(Read<std::uint64_t>(site + at.stack_offset), 100U);
  // Of one sample of a small block: the mean's square.
  EXPECT_EQ(Read<std::uint64_t>(site + at.variances_offset), 65536U);
  // PF3
  const auto before = Read<std::uint64_t>(at.sequence);
  EXPECT_EQ(before % 2, 0U);
  profile_.Remove(BlockAt(9));
  EXPECT_EQ(Read<std::uint64_t>(at.sequence), before + 2);
}

TEST_F(HeapProfileTest, MapsNothingBeforeTheFirstSample) {
  const auto calls = memory_.calls(VmCall::kMap);
  profile_.Remove(BlockAt(1));
  EXPECT_EQ(profile_.AskedClass(BlockAt(1), 7), 7);
  EXPECT_EQ(profile_.Totals().sites, 0U);
  EXPECT_EQ(memory_.calls(VmCall::kMap), calls);
  profile_.Add(BlockAt(1), 16, 0, StackOf(100));
  profile_.Add(BlockAt(2), 16, 0, StackOf(200));
  EXPECT_EQ(memory_.calls(VmCall::kMap), calls + 3);
  EXPECT_EQ(profile_.map_calls(), 3U);
  EXPECT_EQ(profile_.mapped_bytes(), memory_.mapped_bytes());
}

TEST_F(HeapProfileTest, WeightsStandForAllBlocks) {
  profile_.Add(BlockAt(1), 16, 0, StackOf(100));
  profile_.Add(BlockAt(2), 64 * kMiB, 0, StackOf(200));
  // A block of 16 bytes is one of 32,768.5.
  EXPECT_EQ(SiteOf(100).live.samples, 1U);
  EXPECT_NEAR(static_cast<double>(SiteOf(100).live.bytes), kMean + 8, 1);
  EXPECT_EQ(SiteOf(100).live.blocks_256, 32768 * 256 + 128U);
  EXPECT_EQ(SiteOf(200).live.bytes, 64 * kMiB);
  EXPECT_EQ(SiteOf(200).live.blocks(), 1U);
  profile_.CheckInvariants();
}

// A thinned sample stands for more, and goes with what it came with.
TEST_F(HeapProfileTest, ThinnedSamplesStandForMore) {
  profile_.Add(BlockAt(1), 16, 0, StackOf(100), /*thinning=*/4);
  EXPECT_NEAR(static_cast<double>(SiteOf(100).live.bytes), 16 * kMean + 8, 1);
  profile_.Add(BlockAt(2), 16, 0, StackOf(100), /*thinning=*/0);
  profile_.CheckInvariants();
  profile_.Remove(BlockAt(1));
  EXPECT_NEAR(static_cast<double>(SiteOf(100).live.bytes), kMean + 8, 1);
  profile_.Remove(BlockAt(2));
  EXPECT_EQ(SiteOf(100).live, ProfileFigures());
}

// A block of 16 bytes is never taken for sure, one of 64 MiB always is.
TEST_F(HeapProfileTest, VariancesAreOfEachSample) {
  profile_.Add(BlockAt(1), 16, 0, StackOf(100), /*thinning=*/4);
  EXPECT_EQ(SiteOf(100).variances.live, 65536 * 256U);
  for (unsigned i = 2; i < 12; ++i)
    profile_.Add(BlockAt(i), 16, 0, StackOf(100));
  EXPECT_EQ(SiteOf(100).variances.live, 65536 * (256 + 10U));
  profile_.Add(BlockAt(12), 64 * kMiB, 0, StackOf(100));
  EXPECT_EQ(SiteOf(100).variances.live, 65536 * (256 + 10U));
  EXPECT_EQ(SiteOf(100).variances.peak, 65536 * (256 + 10U));
  profile_.CheckInvariants();
  for (unsigned i = 1; i < 13; ++i) profile_.Remove(BlockAt(i));
  EXPECT_EQ(SiteOf(100).variances.live, 0U);
  EXPECT_EQ(SiteOf(100).variances.allocated, 65536 * (256 + 10U));
}

TEST_F(HeapProfileTest, SameStackIsTheSameSite) {
  for (unsigned i = 0; i < 10; ++i) {
    profile_.Add(BlockAt(i), kMean, 0, StackOf(100));
  }
  profile_.Add(BlockAt(10), kMean, 0, StackOf(100, 2));
  profile_.Add(BlockAt(11), kMean, 0, StackOf(100, 0));
  EXPECT_EQ(profile_.Totals().sites, 3U);
  EXPECT_EQ(profile_.Totals().live.samples, 12U);
  for (unsigned i = 0; i < 12; ++i) profile_.Remove(BlockAt(i));
  EXPECT_EQ(profile_.Totals().live, ProfileFigures());
  EXPECT_EQ(profile_.Totals().allocated.samples, 12U);
  profile_.CheckInvariants();
}

TEST_F(HeapProfileTest, PeakIsASnapshotOfAllSites) {
  for (unsigned i = 0; i < 100; ++i) {
    profile_.Add(BlockAt(i), 4 * kMiB, 0, StackOf(100));
  }
  for (unsigned i = 0; i < 90; ++i) profile_.Remove(BlockAt(i));
  for (unsigned i = 200; i < 250; ++i) {
    profile_.Add(BlockAt(i), 4 * kMiB, 0, StackOf(200));
  }
  const ProfileTotals totals = profile_.Totals();
  EXPECT_EQ(totals.live.samples, 60U);
  // Within a 32nd of the true peak.
  EXPECT_GE(totals.peak.samples, 97U);
  EXPECT_LE(totals.peak.samples, 100U);
  EXPECT_EQ(SiteOf(100).peak, totals.peak);
  EXPECT_EQ(SiteOf(200).peak, ProfileFigures());
  for (unsigned i = 300; i < 400; ++i) {
    profile_.Add(BlockAt(i), 4 * kMiB, 0, StackOf(300));
  }
  EXPECT_EQ(SiteOf(100).peak.samples, 10U);
  EXPECT_EQ(SiteOf(200).peak.samples, 50U);
  EXPECT_GE(SiteOf(300).peak.samples, 95U);
}

TEST_F(HeapProfileTest, WhatDoesNotFitIsCounted) {
  const std::uint32_t sites = HeapProfileTable::kSites;
  for (std::uint32_t i = 0; i < sites + 10; ++i) {
    profile_.Add(BlockAt(i), kMean, 0, StackOf(1000 * i));
  }
  EXPECT_EQ(profile_.Totals().sites, sites);
  EXPECT_EQ(profile_.Totals().lost_samples, 10U);
  const std::uint32_t nodes = HeapProfileTable::kNodes;
  for (std::uint32_t i = sites; i < nodes + 5; ++i) {
    profile_.Add(BlockAt(i), kMean, 0, StackOf(0));
  }
  EXPECT_EQ(profile_.Totals().live.samples, nodes);
  EXPECT_EQ(profile_.Totals().lost_samples, 15U);
  EXPECT_EQ(profile_.Totals().allocated.samples, nodes + 15U);
  profile_.CheckInvariants();
  // There is room again.
  profile_.Remove(BlockAt(7));
  profile_.Add(BlockAt(nodes + 100), kMean, 0, StackOf(0));
  EXPECT_EQ(profile_.Totals().lost_samples, 15U);
  for (std::uint32_t i = 0; i < nodes + 200; ++i) profile_.Remove(BlockAt(i));
  EXPECT_EQ(profile_.Totals().live, ProfileFigures());
  profile_.CheckInvariants();
}

TEST_F(HeapProfileTest, WithoutMemorySamplesAreLost) {
  memory_.RefuseCall(1, ENOMEM);
  profile_.Add(BlockAt(1), kMean, 0, StackOf(100));
  EXPECT_EQ(profile_.Totals().lost_samples, 1U);
  EXPECT_EQ(profile_.Totals().allocated.samples, 1U);
  profile_.Remove(BlockAt(1));
  EXPECT_FALSE(profile_.SetAskedClass(BlockAt(1), 1));
  EXPECT_EQ(profile_.AskedClass(BlockAt(1), 2), 2);
  // The kernel is not asked again.
  profile_.Add(BlockAt(1), kMean, 0, StackOf(100));
  EXPECT_EQ(profile_.Totals().lost_samples, 2U);
}

// At each call of the kernel: what was kept before stays.
TEST_F(HeapProfileTest, WhenNoTableCanGrow) {
  for (std::uint64_t refused = 1; refused < 12; ++refused) {
    FakeVirtualMemory memory;
    HeapProfile profile(memory);
    profile.Start(kMean, /*stacks=*/true,
                  {memory.RegionRange().begin, 64 * kMiB});
    memory.RefuseCall(refused, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
    for (unsigned i = 0; i < 3000; ++i) {
      profile.Add(BlockAt(i), kMean, 0, StackOf(1000 * (i % 1500)));
    }
    const ProfileTotals totals = profile.Totals();
    EXPECT_EQ(totals.allocated.samples, 3000U);
    EXPECT_EQ(totals.live.samples + totals.lost_samples, 3000U);
    EXPECT_GT(totals.lost_samples, 0U) << refused;
    profile.CheckInvariants();
    for (unsigned i = 0; i < 3000; ++i) profile.Remove(BlockAt(i));
    EXPECT_EQ(profile.Totals().live, ProfileFigures());
  }
}

TEST_F(HeapProfileTest, AskedClassIsKept) {
  profile_.Add(BlockAt(1), 32 * kKiB, 39, StackOf(100));
  EXPECT_EQ(profile_.AskedClass(BlockAt(1), 0), 39);
  EXPECT_TRUE(profile_.SetAskedClass(BlockAt(1), 36));
  EXPECT_EQ(profile_.AskedClass(BlockAt(1), 0), 36);
}

TEST_F(HeapProfileTest, ASecondSampleOfABlockReplacesTheFirst) {
  profile_.Add(BlockAt(1), 16, 0, StackOf(100));
  profile_.Add(BlockAt(1), kMean, 0, StackOf(200));
  EXPECT_EQ(SiteOf(100).live, ProfileFigures());
  EXPECT_EQ(profile_.Totals().live.samples, 1U);
  profile_.CheckInvariants();
}

// Against a model, over many blocks that come and go.
TEST_F(HeapProfileTest, FiguresAreThoseOfTheLiveSamples) {
  std::map<std::uint64_t, std::uint64_t> live;
  WeakRandom random(5);
  for (unsigned i = 0; i < 100'000; ++i) {
    const std::uint64_t number = random.Below(4000);
    if (live.erase(number) != 0) {
      profile_.Remove(BlockAt(number));
    } else {
      const std::uint64_t place = 1 + random.Below(50);
      live[number] = place;
      profile_.Add(BlockAt(number), 16 + 16 * random.Below(8000), 0,
                   StackOf(1000 * place));
    }
    if (i % 1000 == 0) profile_.CheckInvariants();
  }
  std::map<std::uint64_t, std::uint64_t> samples;
  for (const auto& [number, place] : live) ++samples[place];
  for (const auto& [place, count] : samples) {
    EXPECT_EQ(SiteOf(1000 * place).live.samples, count);
  }
}

// A parent, and a child.
void Fork(HeapProfile& profile) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  profile.lock().LockForFork();
  profile.lock().UnlockAfterFork();
  profile.lock().LockForFork();
  profile.lock().ResetAfterFork();
}

TEST_F(HeapProfileTest, GoesOnAfterAFork) {
  profile_.Add(BlockAt(1), kMean, 0, StackOf(100));
  Fork(profile_);
  profile_.Add(BlockAt(2), kMean, 0, StackOf(100));
  profile_.Remove(BlockAt(1));
  EXPECT_EQ(profile_.Totals().live.samples, 1U);
}

}  // namespace
}  // namespace hakmem
