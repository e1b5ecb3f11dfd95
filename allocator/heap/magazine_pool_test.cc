#include "allocator/heap/magazine_pool.h"

#include <sys/mman.h>

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
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;
using Magazines = std::vector<MagazineTop>;

constexpr std::size_t kWindowBytes = 80 * kMiB;
constexpr std::size_t kPageBytes = 4 * kKiB;
constexpr std::size_t kSheetBytes = MagazinePool::kSheetBytes;
constexpr std::size_t kOfSheet = kSheetBytes / kMagazineBytes;
// Link and blocks. What follows is the next one's.
constexpr std::size_t kUsableBytes = (1 + kMagazineSlots) * kMagazineSlotBytes;
// The first unit has what says which magazines are free.
constexpr std::size_t kFirstPage = kUnitBytes / kPageBytes;
constexpr std::size_t kSheetPages = kSheetBytes / kPageBytes;

class MagazinePoolTest : public testing::Test {
 protected:
  MagazinePoolTest() {
    pool_.Place({memory_.RegionRange().begin, kWindowBytes});
  }
  MagazineTop TakeOne() {
    MagazineTop magazine = 0;
    pool_.Take(1, magazine);
    return magazine;
  }
  void PutOne(MagazineTop magazine) {
    MagazineLink(magazine) = 0;
    pool_.Put(magazine);
  }
  Magazines Take(std::size_t count) {
    Magazines magazines(count);
    for (MagazineTop& magazine : magazines) magazine = TakeOne();
    return magazines;
  }
  // In an order that has none.
  void Put(Magazines magazines) {
    std::shuffle(magazines.begin(), magazines.end(), random_);
    for (const MagazineTop magazine : magazines) PutOne(magazine);
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
    const MagazineTop magazine = TakeOne();
    ASSERT_NE(magazine, 0U);
    std::memset(reinterpret_cast<void*>(magazine), i, kMagazineBytes);
    EXPECT_EQ(magazine % kMagazineBytes, 0U);
    EXPECT_TRUE(all.insert(magazine).second);
  }
  EXPECT_EQ(pool_.mapped_bytes(), memory_.mapped_bytes());
  pool_.CheckInvariants();
  pool_.CheckNoneIsLost(2000);
}

TEST_F(MagazinePoolTest, ListsAreTakenAndPutAtOnce) {
  MagazineTop list = 0;
  EXPECT_EQ(pool_.Take(2 * kOfSheet, list), 2 * kOfSheet);
  std::set<MagazineTop> all;
  for (MagazineTop top = list; top != 0; top = MagazineLink(top)) {
    all.insert(top);
  }
  EXPECT_EQ(all.size(), 2 * kOfSheet);
  EXPECT_EQ(pool_.calls(), 1U);
  pool_.Put(list);
  EXPECT_EQ(pool_.calls(), 2U);
  pool_.CheckInvariants();
  pool_.CheckNoneIsLost(0);
}

TEST_F(MagazinePoolTest, TheWordsBeforeAMagazineHoldItsAddress) {
  const Magazines all = Take(1024 * kOfSheet);
  for (const MagazineTop magazine : all) {
    void** const words = reinterpret_cast<void**>(magazine);
    for (void** word = words - kFetchDepth; word != words; ++word) {
      ASSERT_EQ(*word, static_cast<void*>(words));
    }
  }
  pool_.CheckInvariants();
  Put(all);
}

// Has a thread come while the lock is held.
void WaitForPool(MagazinePool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  pool.lock().LockForFork();
  TestThread other([&] {
    MagazineTop list = 0;
    pool.Take(1, list);
    pool.Put(list);
  });
  other.AwaitWaitFor(pool);
  pool.lock().UnlockAfterFork();
}

TEST_F(MagazinePoolTest, CountsWaitsForItsLock) {
  PutOne(TakeOne());
  const auto waits = [&] {
    Statistics statistics;
    StatisticSum sum(statistics);
    pool_.VisitCounters(sum);
    return statistics.magazine_pool_lock_waits;
  };
  EXPECT_EQ(waits(), 0U);
  WaitForPool(pool_);
  // Of the two calls only the first can have met the other thread.
  EXPECT_EQ(waits(), 1U);
}

TEST_F(MagazinePoolTest, RunsOutAndRecovers) {
  memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  EXPECT_EQ(TakeOne(), 0U);
  MagazineTop list = 0;
  EXPECT_EQ(pool_.Take(3, list), 0U);
  pool_.CheckInvariants();
  memory_.RefuseNothing();
  Magazines magazines;
  while (const MagazineTop magazine = TakeOne()) {
    magazines.push_back(magazine);
  }
  // Two groups of sheets, and a unit before each.
  EXPECT_EQ(magazines.size(), (kWindowBytes / kSheetBytes - 2) * kOfSheet);
  EXPECT_EQ(std::set<MagazineTop>(magazines.begin(), magazines.end()).size(),
            magazines.size());
  PutOne(magazines.back());
  EXPECT_EQ(TakeOne(), magazines.back());
  EXPECT_EQ(TakeOne(), 0U);
  pool_.CheckInvariants();
}

TEST_F(MagazinePoolTest, OneThatIsFreeIsNotPutAgain) {
  const MagazineTop magazine = TakeOne();
  PutOne(magazine);
  EXPECT_DEATH(PutOne(magazine), "internal check failed");
}

TEST_F(MagazinePoolTest, GivesPagesBackAndHandsThemOutAgain) {
  const Magazines magazines = Take(2 * kOfSheet);
  EXPECT_EQ(Purge(), 0U);
  for (int round = 0; round < 3; ++round) {
    memory_.ForgetPurges();
    Put(magazines);
    EXPECT_EQ(Purge(), 2 * kSheetBytes);
    EXPECT_FALSE(IsPurged(0));
    EXPECT_TRUE(IsPurged(kFirstPage, 2 * kSheetPages));
    EXPECT_EQ(Purge(), 0U);
    ExpectAllAreFree(magazines);
  }
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 6U);
}

TEST_F(MagazinePoolTest, ALongListIsPutInParts) {
  constexpr std::uint32_t kMost = 1024;
  MagazineTop list = 0;
  ASSERT_EQ(pool_.Take(3 * kMost, list), 3 * kMost);
  const std::uint64_t calls = pool_.calls();
  pool_.Put(list);
  EXPECT_EQ(pool_.calls(), calls + 3);
  pool_.CheckInvariants();
  pool_.CheckNoneIsLost(0);
}

// The lowest of a sheet, and of the sheet that got one last.
TEST_F(MagazinePoolTest, ASheetServesUntilItHasNone) {
  const Magazines all = Take(3 * kOfSheet);
  const auto of_sheet = [&](std::size_t sheet) {
    const auto first = all.begin() + sheet * kOfSheet;
    return Magazines(first, first + kOfSheet);
  };
  for (const std::size_t sheet : {1, 0, 2}) Put(of_sheet(sheet));
  for (const std::size_t sheet : {2, 0, 1}) {
    EXPECT_EQ(Take(kOfSheet), of_sheet(sheet));
    pool_.CheckInvariants();
  }
}

// What says which magazines of the sheets between are free cannot be read here.
TEST_F(MagazinePoolTest, FullSheetsAreNotLookedAt) {
  constexpr std::size_t kSheets = 1000;
  const Magazines all = Take(kSheets * kOfSheet);
  void* const between =
      reinterpret_cast<void*>(memory_.RegionRange().begin + 2 * kPageBytes);
  constexpr std::size_t kBytes = kUnitBytes - 4 * kPageBytes;
  ASSERT_EQ(mprotect(between, kBytes, PROT_NONE), 0);
  const MagazineTop last = all[(kSheets - 1) * kOfSheet];
  PutOne(last);
  PutOne(all.front());
  EXPECT_EQ(TakeOne(), all.front());
  EXPECT_EQ(TakeOne(), last);
  ASSERT_EQ(mprotect(between, kBytes, PROT_READ | PROT_WRITE), 0);
  pool_.CheckInvariants();
}

TEST_F(MagazinePoolTest, OneInUseSplitsRuns) {
  Magazines magazines = Take(kOfSheet);
  const auto middle = magazines.begin() + 36;  // of page 4
  auto* const used = reinterpret_cast<unsigned char*>(*middle);
  std::memset(used, 0x5A, kMagazineBytes);
  magazines.erase(middle);
  Put(magazines);
  EXPECT_EQ(Purge(), kSheetBytes - kPageBytes);
  EXPECT_TRUE(IsPurged(kFirstPage, 4));
  EXPECT_FALSE(IsPurged(kFirstPage + 4));
  EXPECT_TRUE(IsPurged(kFirstPage + 5, kSheetPages - 5));
  EXPECT_TRUE(std::all_of(used, used + kMagazineBytes,
                          [](unsigned char byte) { return byte == 0x5A; }));
  ExpectAllAreFree(magazines);
}

// What was never touched has no memory to give.
TEST_F(MagazinePoolTest, WhatWasNeverTakenIsNotPurged) {
  Put(Take(3 * 8 - 1));
  EXPECT_EQ(Purge(), 3 * kPageBytes);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 1U);
}

TEST_F(MagazinePoolTest, ARefusedPurgeLosesNothing) {
  const Magazines magazines = Take(2 * kOfSheet);
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    Put(magazines);
    memory_.RefuseCall(nth, EINVAL, Refuse::kOnce, VmCall::kPurge);
    EXPECT_EQ(Purge(), kSheetBytes);
    EXPECT_EQ(Purge(), kSheetBytes);
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
  EXPECT_EQ(Purge(), 20 * kSheetBytes);
  EXPECT_EQ(longest, kSheetBytes);
  ExpectAllAreFree(magazines);
}

void ForkInHandler(MagazinePool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  pool.lock().LockForFork();
  pool.ResetLockAfterFork();
}

TEST_F(MagazinePoolTest, ForkHoldsTheLock) {
  ForkInHandler(pool_);
  EXPECT_NE(TakeOne(), 0U);
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
  EXPECT_EQ(Purge(), 2 * kSheetBytes);
  EXPECT_EQ(inner_bytes, 0U);
  ExpectAllAreFree(magazines);
}

TEST_F(MagazinePoolTest, OnlyManyAreWorthIt) {
  constexpr std::size_t kMany = 1 * kMiB / kMagazineBytes;
  const Magazines magazines = Take(3 * kMany);
  const auto put = [&](std::size_t from, std::size_t to) {
    Put(Magazines(magazines.begin() + from, magazines.begin() + to));
  };
  put(0, kMany - 1);
  EXPECT_EQ(Purge(/*if_many=*/true), 0U);
  put(kMany - 1, kMany);
  EXPECT_EQ(Purge(/*if_many=*/true), kMany * kMagazineBytes);
  put(kMany, 2 * kMany - 1);
  EXPECT_EQ(Purge(/*if_many=*/true), 0U);
  // What has gone and is wanted again is not counted twice.
  Take(2 * kMany - 1);
  put(2 * kMany, 3 * kMany - 1);
  EXPECT_EQ(Purge(/*if_many=*/true), 0U);
  put(3 * kMany - 1, 3 * kMany);
  EXPECT_EQ(Purge(/*if_many=*/true), kMany * kMagazineBytes);
}

TEST_F(MagazinePoolTest, ManyThreadsMayUseIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      Magazines mine;
      for (int i = 0; i < 4000; ++i) {
        if (mine.size() < 50) {
          mine.push_back(TakeOne());
          ASSERT_NE(mine.back(), 0U);
          std::memset(reinterpret_cast<void*>(mine.back()), t + 1,
                      kUsableBytes);
        } else {
          for (const MagazineTop magazine : mine) {
            const auto* const bytes =
                reinterpret_cast<const unsigned char*>(magazine);
            ASSERT_EQ(bytes[0], t + 1);
            ASSERT_EQ(bytes[kUsableBytes - 1], t + 1);
            PutOne(magazine);
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
