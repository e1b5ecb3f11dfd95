#include "allocator/heap/magazine_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "allocator/base/units.h"
#include "allocator/heap/magazine.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;
using Magazines = std::vector<MagazineTop>;

constexpr std::size_t kWindowBytes = 64 * kMiB;
constexpr std::size_t kPageBytes = MagazinePool::kPageBytes;
constexpr std::size_t kSheetBytes = MagazinePool::kSheetBytes;
constexpr std::size_t kOfSheet = kSheetBytes / kMagazineBytes - 1;
// Link and blocks. What follows is the next one's.
constexpr std::size_t kUsableBytes = (1 + kMagazineSlots) * kMagazineSlotBytes;

class MagazinePoolTest : public testing::Test {
 protected:
  MagazinePoolTest() {
    pool_.Place({memory_.RegionRange().begin, kWindowBytes});
  }
  Magazines Take(std::size_t count) {
    Magazines magazines(count);
    for (MagazineTop& magazine : magazines) magazine = pool_.Take();
    return magazines;
  }
  // In an order that has none.
  void Put(Magazines magazines) {
    std::shuffle(magazines.begin(), magazines.end(), random_);
    for (const MagazineTop magazine : magazines) pool_.Put(magazine);
    pool_.CheckInvariants();
  }
  std::size_t Purge(bool if_many = false) {
    const std::size_t bytes = pool_.Purge(if_many);
    pool_.CheckInvariants();
    return bytes;
  }
  bool IsPurged(std::size_t page, std::size_t pages = 1) {
    return memory_.IsPurged(memory_.RegionRange().begin + page * kPageBytes,
                            pages * kPageBytes);
  }
  // That each of them is handed out again, once, before the table grows.
  void ExpectAllAreFree(const Magazines& magazines) {
    const std::size_t mapped_bytes = pool_.mapped_bytes();
    const Magazines again = Take(magazines.size());
    for (const MagazineTop magazine : again) {
      std::memset(reinterpret_cast<void*>(magazine), 0xAB, kMagazineBytes);
    }
    pool_.CheckInvariants();
    EXPECT_EQ(std::set<MagazineTop>(again.begin(), again.end()),
              std::set<MagazineTop>(magazines.begin(), magazines.end()));
    EXPECT_EQ(pool_.mapped_bytes(), mapped_bytes);
  }

  FakeVirtualMemory memory_;
  MagazinePool pool_{memory_};
  std::mt19937_64 random_;
};

TEST_F(MagazinePoolTest, MagazinesAreAlignedAndDoNotOverlap) {
  std::set<MagazineTop> all;
  for (int i = 0; i < 2000; ++i) {
    const MagazineTop magazine = pool_.Take();
    ASSERT_NE(magazine, 0U);
    std::memset(reinterpret_cast<void*>(magazine), i, kMagazineBytes);
    EXPECT_EQ(magazine % kMagazineBytes, 0U);
    EXPECT_TRUE(all.insert(magazine).second);
  }
  EXPECT_EQ(pool_.mapped_bytes(), memory_.mapped_bytes());
  EXPECT_EQ(pool_.map_calls(), memory_.calls(VmCall::kMap));
  pool_.CheckInvariants();
  pool_.CheckNoneIsLost(2000);
}

TEST_F(MagazinePoolTest, ListsAreTakenAndPutAtOnce) {
  MagazineTop list = 0;
  EXPECT_EQ(pool_.TakeList(2 * kOfSheet, list), 2 * kOfSheet);
  std::set<MagazineTop> all;
  for (MagazineTop top = list; top != 0; top = MagazineLink(top)) {
    all.insert(top);
  }
  EXPECT_EQ(all.size(), 2 * kOfSheet);
  EXPECT_EQ(pool_.calls(), 1U);
  pool_.PutList(list);
  EXPECT_EQ(pool_.calls(), 2U);
  pool_.CheckInvariants();
  pool_.CheckNoneIsLost(0);
}

TEST_F(MagazinePoolTest, TheWordsBeforeAMagazineHoldItsAddress) {
  const Magazines all = Take(kOfSheet + 1);
  for (const MagazineTop magazine : all) {
    for (std::uint32_t i = 0; i < kFetchDepth; ++i) {
      EXPECT_EQ(BlockBelow(magazine + i * kMagazineSlotBytes),
                reinterpret_cast<void*>(magazine));
    }
  }
  for (const MagazineTop magazine : all) pool_.Put(magazine);
}

// Has a thread come while the lock is held.
void WaitForPool(MagazinePool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  pool.LockForFork();
  TestThread other([&] { pool.Put(pool.Take()); });
  other.AwaitWaitFor(pool);
  pool.UnlockAfterFork();
}

TEST_F(MagazinePoolTest, CountsWaitsForItsLock) {
  pool_.Put(pool_.Take());
  EXPECT_EQ(pool_.lock_waits(), 0U);
  WaitForPool(pool_);
  // Of the two calls only the first can have met the other thread.
  EXPECT_EQ(pool_.lock_waits(), 1U);
}

TEST_F(MagazinePoolTest, RunsOutAndRecovers) {
  memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  EXPECT_EQ(pool_.Take(), 0U);
  MagazineTop list = 0;
  EXPECT_EQ(pool_.TakeList(3, list), 0U);
  pool_.CheckInvariants();
  memory_.RefuseNothing();
  Magazines magazines;
  while (const MagazineTop magazine = pool_.Take()) {
    magazines.push_back(magazine);
  }
  EXPECT_EQ(magazines.size(), kWindowBytes / kSheetBytes * kOfSheet);
  pool_.Put(magazines.back());
  EXPECT_EQ(pool_.Take(), magazines.back());
  EXPECT_EQ(pool_.Take(), 0U);
  pool_.CheckInvariants();
}

TEST_F(MagazinePoolTest, OneThatIsFreeIsNotPutAgain) {
  const MagazineTop magazine = pool_.Take();
  pool_.Put(magazine);
  EXPECT_DEATH(pool_.Put(magazine), "internal check failed");
}

TEST_F(MagazinePoolTest, GivesPagesBackAndHandsThemOutAgain) {
  const Magazines magazines = Take(2 * kOfSheet);
  EXPECT_EQ(Purge(), 0U);
  for (int round = 0; round < 3; ++round) {
    memory_.ForgetPurges();
    Put(magazines);
    // All but the pages of the heads.
    EXPECT_EQ(Purge(), 2 * (kSheetBytes - kPageBytes));
    EXPECT_FALSE(IsPurged(0));
    EXPECT_TRUE(IsPurged(1, 63));
    EXPECT_FALSE(IsPurged(64));
    EXPECT_TRUE(IsPurged(65, 63));
    EXPECT_EQ(Purge(), 0U);
    ExpectAllAreFree(magazines);
  }
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 6U);
}

TEST_F(MagazinePoolTest, TheLowestOfASheetServeFirst) {
  const Magazines magazines = Take(100);
  Put(magazines);
  EXPECT_EQ(Take(100), magazines);
}

TEST_F(MagazinePoolTest, OneInUseSplitsRuns) {
  Magazines magazines = Take(kOfSheet);
  const auto middle = magazines.begin() + 36;  // of page 4, behind the head
  auto* const used = reinterpret_cast<unsigned char*>(*middle);
  std::memset(used, 0x5A, kMagazineBytes);
  magazines.erase(middle);
  Put(magazines);
  EXPECT_EQ(Purge(), 62 * kPageBytes);
  EXPECT_TRUE(IsPurged(1, 3));
  EXPECT_FALSE(IsPurged(4));
  EXPECT_TRUE(IsPurged(5, 59));
  EXPECT_TRUE(std::all_of(used, used + kMagazineBytes,
                          [](unsigned char byte) { return byte == 0x5A; }));
  ExpectAllAreFree(magazines);
}

// What was never touched has no memory to give.
TEST_F(MagazinePoolTest, WhatWasNeverTakenIsNotPurged) {
  Put(Take(3 * 8 - 1));
  EXPECT_EQ(Purge(), 2 * kPageBytes);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 1U);
}

TEST_F(MagazinePoolTest, ARefusedPurgeLosesNothing) {
  const Magazines magazines = Take(2 * kOfSheet);
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    Put(magazines);
    memory_.RefuseCall(nth, EINVAL, Refuse::kOnce, VmCall::kPurge);
    EXPECT_EQ(Purge(), kSheetBytes - kPageBytes);
    EXPECT_EQ(Purge(), kSheetBytes - kPageBytes);
    ExpectAllAreFree(magazines);
  }
}

// What waits, a fork as well, is not kept waiting for more than one sheet.
TEST_F(MagazinePoolTest, NoCallOfTheKernelIsLong) {
  const Magazines magazines = Take(20 * kOfSheet);
  std::size_t longest = 0;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t bytes) {
    longest = std::max(longest, bytes);
  });
  Put(magazines);
  EXPECT_EQ(Purge(), 20 * (kSheetBytes - kPageBytes));
  EXPECT_EQ(longest, kSheetBytes - kPageBytes);
  ExpectAllAreFree(magazines);
}

void ForkInHandler(MagazinePool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  pool.LockForFork();
  pool.ResetLockAfterFork();
}

TEST_F(MagazinePoolTest, ForkHoldsTheLock) {
  ForkInHandler(pool_);
  EXPECT_NE(pool_.Take(), 0U);
  pool_.CheckInvariants();
}

// A handler that interrupted a purge may purge, too.
TEST_F(MagazinePoolTest, APurgeInAPurgeDoesNothing) {
  const Magazines magazines = Take(2 * kOfSheet);
  Put(magazines);
  std::size_t inner_bytes = 0;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    inner_bytes += pool_.Purge(/*if_many=*/false);
  });
  EXPECT_EQ(Purge(), 2 * (kSheetBytes - kPageBytes));
  EXPECT_EQ(inner_bytes, 0U);
  ExpectAllAreFree(magazines);
}

TEST_F(MagazinePoolTest, OnlyManyAreWorthIt) {
  constexpr std::size_t kManyPages = 1 * kMiB / kPageBytes;
  const Magazines magazines = Take(5 * kOfSheet);
  const std::size_t page = kPageBytes / kMagazineBytes;
  // Pages behind the heads.
  Magazines many;
  for (std::size_t sheet = 0; sheet < 5; ++sheet) {
    const auto first = magazines.begin() + sheet * kOfSheet + page - 1;
    many.insert(many.end(), first, first + 63 * page);
  }
  const auto part = [&](std::size_t from, std::size_t to) {
    return Magazines(many.begin() + from * page, many.begin() + to * page);
  };
  Put(part(0, kManyPages - 1));
  EXPECT_EQ(Purge(/*if_many=*/true), 0U);
  Put(part(kManyPages - 1, kManyPages));
  EXPECT_EQ(Purge(/*if_many=*/true), kManyPages * kPageBytes);
  EXPECT_EQ(Purge(), 0U);
}

TEST_F(MagazinePoolTest, ManyThreadsMayUseIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      Magazines mine;
      for (int i = 0; i < 4000; ++i) {
        if (mine.size() < 50) {
          mine.push_back(pool_.Take());
          ASSERT_NE(mine.back(), 0U);
          std::memset(reinterpret_cast<void*>(mine.back()), t + 1,
                      kUsableBytes);
        } else {
          for (const MagazineTop magazine : mine) {
            const auto* const bytes =
                reinterpret_cast<const unsigned char*>(magazine);
            ASSERT_EQ(bytes[0], t + 1);
            ASSERT_EQ(bytes[kUsableBytes - 1], t + 1);
            pool_.Put(magazine);
          }
          mine.clear();
          if (i % 1000 == 999) pool_.Purge(/*if_many=*/false);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool_.CheckInvariants();
  EXPECT_LE(pool_.mapped_bytes(), 4 * kSheetBytes);
}

}  // namespace
}  // namespace hakmem
