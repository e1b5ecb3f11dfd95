#include "allocator/heap/spare_magazines.h"

#include <cerrno>
#include <cstdint>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/magazine_pool.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kRoom = 1 * kMiB;

class SpareMagazinesTest : public testing::Test {
 protected:
  SpareMagazinesTest() { pool_.Place({memory_.RegionRange().begin, 4 * kMiB}); }

  std::vector<MagazineTop> Take(std::uint32_t count) {
    std::vector<MagazineTop> tops;
    for (std::uint32_t i = 0; i < count; ++i) {
      tops.push_back(spares_.Take(pool_));
    }
    return tops;
  }
  void Put(const std::vector<MagazineTop>& tops, std::uint64_t room = kRoom) {
    for (const MagazineTop top : tops) spares_.PutOrGiveBack(pool_, top, room);
    spares_.CheckInvariants();
    pool_.CheckInvariants();
  }

  FakeVirtualMemory memory_;
  MagazinePool pool_{memory_};
  SpareMagazines spares_;
};

TEST_F(SpareMagazinesTest, TakesOneAtATimeOfWhatAHeapWithoutBurstsNeeds) {
  const std::vector<MagazineTop> tops = Take(63);
  EXPECT_EQ(std::set<MagazineTop>(tops.begin(), tops.end()).size(), 63U);
  EXPECT_EQ(pool_.calls(), 63U);
  EXPECT_EQ(spares_.count(), 0U);
}

TEST_F(SpareMagazinesTest, TakesMoreAtOnceTheMoreThereAre) {
  const std::vector<MagazineTop> tops = Take(2000);
  EXPECT_EQ(std::set<MagazineTop>(tops.begin(), tops.end()).size(), 2000U);
  EXPECT_LT(pool_.calls(), 250U);
  EXPECT_EQ(spares_.bytes(), 0U);
}

TEST_F(SpareMagazinesTest, WhatABurstEmptiedServesTheNext) {
  Put(Take(1000));
  const std::uint64_t calls = pool_.calls();
  for (int burst = 0; burst < 10; ++burst) Put(Take(1000));
  EXPECT_EQ(pool_.calls(), calls);
}

TEST_F(SpareMagazinesTest, WithoutRoomFewStayAndSeveralGoAtOnce) {
  const std::vector<MagazineTop> tops = Take(1000);
  const std::uint64_t calls = pool_.calls();
  Put(tops, /*room=*/kMagazineBytes - 1);
  EXPECT_LE(spares_.count(), SpareMagazines::kAlwaysKept);
  EXPECT_EQ(spares_.bytes(), 0U);
  EXPECT_LE(pool_.calls() - calls, 1000 / SpareMagazines::kGivenAtOnce);
}

TEST_F(SpareMagazinesTest, TrimGivesBackWhatNobodyNeededSinceTheLast) {
  Put(Take(1000));
  spares_.Trim(pool_);  // the burst needed them all, but for those of a batch
  EXPECT_GE(spares_.count(), 1000U - SpareMagazines::kMaxBatch);
  Put(Take(100));
  const std::uint64_t calls = pool_.calls();
  spares_.Trim(pool_);
  EXPECT_EQ(spares_.count(), 100U);
  EXPECT_EQ(pool_.calls() - calls, 1U);
  spares_.Trim(pool_);
  EXPECT_EQ(spares_.count(), SpareMagazines::kAlwaysKept);
  spares_.CheckInvariants();
  pool_.CheckInvariants();
}

TEST_F(SpareMagazinesTest, GoesOnWhenNoMetadataIsLeft) {
  std::vector<MagazineTop> tops = Take(500);
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  MagazineTop top = 0;
  while ((top = spares_.Take(pool_)) != 0) tops.push_back(top);
  EXPECT_EQ(spares_.count(), 0U);
  Put(tops);
  EXPECT_EQ(spares_.count(), tops.size());
  EXPECT_EQ(std::set<MagazineTop>(tops.begin(), tops.end()).size(),
            tops.size());
}

}  // namespace
}  // namespace hakmem
