#include "allocator/heap/metadata_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr std::size_t kPieceBytes = 512;
constexpr std::size_t kWindowBytes = 1 * kMiB;

void ForkAndGoOnInChild(MetadataPool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  pool.LockPurgeForFork();
  pool.LockForFork();
  pool.ResetLockAfterFork();
}

class MetadataPoolTest : public testing::Test {
 protected:
  MetadataPoolTest() {
    pool_.Place({memory_.RegionRange().begin, kWindowBytes});
  }

  FakeVirtualMemory memory_;
  MetadataPool pool_{memory_, kPieceBytes};
};

TEST_F(MetadataPoolTest, PiecesAreAlignedAndDoNotOverlap) {
  std::set<Address> pieces;
  for (int i = 0; i < 1000; ++i) {
    void* piece = pool_.Take();
    ASSERT_NE(piece, nullptr);
    std::memset(piece, i, kPieceBytes);
    const auto address = reinterpret_cast<Address>(piece);
    EXPECT_EQ(address % kPieceBytes, 0U);
    const auto next = pieces.lower_bound(address);
    if (next != pieces.end()) EXPECT_GE(*next, address + kPieceBytes);
    if (next != pieces.begin()) {
      EXPECT_LE(*std::prev(next), address - kPieceBytes);
    }
    pieces.insert(address);
  }
  EXPECT_EQ(pool_.mapped_bytes(), memory_.mapped_bytes());
  EXPECT_EQ(pool_.map_calls(), memory_.calls(VmCall::kMap));
  pool_.CheckInvariants();
}

// Has a thread come while the lock is held.
void WaitForPool(MetadataPool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  pool.LockForFork();
  TestThread other([&] { pool.Put(pool.Take()); });
  other.AwaitWaitFor(pool);
  pool.UnlockAfterFork();
}

TEST_F(MetadataPoolTest, CountsWaitsForItsLock) {
  pool_.Put(pool_.Take());
  EXPECT_EQ(pool_.lock_waits(), 0U);
  WaitForPool(pool_);
  // Of the two calls only the first can have met the other thread.
  EXPECT_EQ(pool_.lock_waits(), 1U);
}

TEST_F(MetadataPoolTest, TakesAgainWhatWasPut) {
  void* one = pool_.Take();
  void* two = pool_.Take();
  pool_.Put(one);
  pool_.Put(two);
  pool_.CheckInvariants();
  const std::set<void*> again = {pool_.Take(), pool_.Take()};
  EXPECT_EQ(again, (std::set<void*>{one, two}));
  EXPECT_EQ(again.count(pool_.Take()), 0U);
}

TEST_F(MetadataPoolTest, RunsOutAndRecovers) {
  memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  EXPECT_EQ(pool_.Take(), nullptr);
  pool_.CheckInvariants();
  memory_.RefuseNothing();
  std::vector<void*> pieces;
  while (void* piece = pool_.Take()) pieces.push_back(piece);
  EXPECT_EQ(pieces.size(), kWindowBytes / kPieceBytes);
  pool_.Put(pieces.back());
  EXPECT_EQ(pool_.Take(), pieces.back());
  EXPECT_EQ(pool_.Take(), nullptr);
  pool_.CheckInvariants();
}

TEST_F(MetadataPoolTest, ForkHoldsTheLock) {
  pool_.LockForFork();
  pool_.UnlockAfterFork();
  EXPECT_NE(pool_.Take(), nullptr);
  ForkAndGoOnInChild(pool_);
  EXPECT_NE(pool_.Take(), nullptr);
}

class MetadataPoolPurgeTest : public testing::Test {
 protected:
  static constexpr std::size_t kLongWindowBytes = 64 * kMiB;
  using Pieces = std::vector<void*>;

  MetadataPoolPurgeTest() {
    pool_.Place({memory_.RegionRange().begin, kLongWindowBytes});
  }
  // In the order of their addresses, which fill pages from the table's start.
  Pieces TakePages(std::size_t pages) {
    Pieces pieces(pages * page_pieces_);
    for (void*& piece : pieces) piece = pool_.Take();
    std::sort(pieces.begin(), pieces.end());
    return pieces;
  }
  // In an order that has none.
  void Put(Pieces pieces) {
    std::shuffle(pieces.begin(), pieces.end(), random_);
    for (void* piece : pieces) pool_.Put(piece);
  }
  std::size_t Purge(bool only_many = false) {
    const std::size_t bytes = pool_.Purge(only_many);
    pool_.CheckInvariants();
    return bytes;
  }
  bool IsPurged(std::size_t page, std::size_t pages = 1) {
    return memory_.IsPurged(memory_.RegionRange().begin + page * page_bytes_,
                            pages * page_bytes_);
  }
  // That each of them is handed out again, once, before the table grows.
  void ExpectAllAreFree(const Pieces& pieces) {
    Pieces again(pieces.size());
    for (void*& piece : again) {
      piece = pool_.Take();
      ASSERT_NE(piece, nullptr);
      std::memset(piece, 0xAB, kPieceBytes);
    }
    pool_.CheckInvariants();
    std::sort(again.begin(), again.end());
    EXPECT_EQ(again, pieces);
  }

  FakeVirtualMemory memory_;
  const std::size_t page_bytes_ = memory_.PageBytes();
  const std::size_t page_pieces_ = page_bytes_ / kPieceBytes;
  MetadataPool pool_{memory_, kPieceBytes};
  std::mt19937_64 random_;
};

TEST_F(MetadataPoolPurgeTest, GivesPagesBackAndHandsThemOutAgain) {
  const Pieces pieces = TakePages(64);
  EXPECT_EQ(Purge(), 0U);
  for (int round = 0; round < 3; ++round) {
    memory_.ForgetPurges();
    Put(pieces);
    EXPECT_EQ(Purge(), 63 * page_bytes_);
    EXPECT_FALSE(IsPurged(0));
    EXPECT_TRUE(IsPurged(1, 63));
    EXPECT_EQ(Purge(), 0U);
    ExpectAllAreFree(pieces);
  }
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 3U);
  EXPECT_EQ(pool_.mapped_bytes(), memory_.mapped_bytes());
}

TEST_F(MetadataPoolPurgeTest, TakesTheLowestAddressesFirst) {
  const Pieces pieces = TakePages(8);
  Pieces others;
  for (std::size_t i = 0; i < pieces.size(); i += 2)
    others.push_back(pieces[i]);
  Put(others);
  EXPECT_EQ(Purge(), 0U);
  for (void* piece : others) EXPECT_EQ(pool_.Take(), piece);
}

TEST_F(MetadataPoolPurgeTest, APieceInUseSplitsRuns) {
  Pieces pieces = TakePages(10);
  const auto middle = pieces.begin() + 4 * page_pieces_ + page_pieces_ / 2;
  auto* const used = static_cast<unsigned char*>(*middle);
  std::memset(used, 0x5A, kPieceBytes);
  pieces.erase(middle);
  Put(pieces);
  EXPECT_EQ(Purge(), 7 * page_bytes_);
  EXPECT_TRUE(IsPurged(1, 3));
  EXPECT_FALSE(IsPurged(4));
  EXPECT_FALSE(IsPurged(5));
  EXPECT_TRUE(IsPurged(6, 4));
  EXPECT_TRUE(std::all_of(used, used + kPieceBytes,
                          [](unsigned char byte) { return byte == 0x5A; }));
  ExpectAllAreFree(pieces);
}

// The first and the last page are not the pool's alone.
TEST_F(MetadataPoolPurgeTest, OnlyWholePagesOfItsTableGoBack) {
  MetadataPool pool(memory_, kPieceBytes);
  const Address begin = memory_.RegionRange().begin + kLongWindowBytes;
  pool.Place({begin, kLongWindowBytes});
  std::vector<void*> pieces(3 * page_pieces_ + 1);
  for (void*& piece : pieces) piece = pool.Take();
  for (void* piece : pieces) pool.Put(piece);
  EXPECT_EQ(pool.Purge(/*only_many=*/false), 2 * page_bytes_);
  pool.CheckInvariants();
  EXPECT_FALSE(memory_.IsPurged(begin + 3 * page_bytes_, page_bytes_));
}

TEST_F(MetadataPoolPurgeTest, PiecesMayBeLongerThanPages) {
  const std::size_t piece_bytes = 4 * page_bytes_;
  MetadataPool pool(memory_, piece_bytes);
  pool.Place(
      {RoundUp(memory_.RegionRange().begin + kLongWindowBytes, piece_bytes),
       kLongWindowBytes});
  std::set<void*> pieces;
  for (int i = 0; i < 20; ++i) pieces.insert(pool.Take());
  for (void* piece : pieces) pool.Put(piece);
  EXPECT_EQ(pool.Purge(/*only_many=*/false), 19 * piece_bytes);
  pool.CheckInvariants();
  std::set<void*> again;
  for (int i = 0; i < 20; ++i) again.insert(pool.Take());
  pool.CheckInvariants();
  EXPECT_EQ(again, pieces);
}

TEST_F(MetadataPoolPurgeTest, ARefusedPurgeLosesNothing) {
  Pieces pieces = TakePages(12);
  // Three runs: of 4, 3 and 3 pages.
  pieces.erase(pieces.begin() + 4 * page_pieces_);
  pieces.erase(pieces.begin() + 9 * page_pieces_ - 2);
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    Put(pieces);
    memory_.RefuseCall(nth, EINVAL, Refuse::kOnce, VmCall::kPurge);
    const std::size_t bytes = Purge();
    EXPECT_GE(bytes, 4 * page_bytes_);
    EXPECT_LE(bytes, 5 * page_bytes_);
    ExpectAllAreFree(pieces);
  }
  Put(pieces);
  memory_.RefuseCall(1, EINVAL, Refuse::kFromThenOn, VmCall::kPurge);
  EXPECT_EQ(Purge(), 0U);
  memory_.RefuseNothing();
  EXPECT_EQ(Purge(), 7 * page_bytes_);
  ExpectAllAreFree(pieces);
}

TEST_F(MetadataPoolPurgeTest, NoCallOfTheKernelIsLong) {
  const Pieces pieces = TakePages(20 * kMiB / page_bytes_);
  std::size_t longest = 0;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t bytes) {
    longest = std::max(longest, bytes);
  });
  Put(pieces);
  EXPECT_EQ(Purge(), 20 * kMiB - page_bytes_);
  EXPECT_EQ(longest, 16 * kMiB);
  ExpectAllAreFree(pieces);
  // What is refused, and all behind it, stays.
  Put(pieces);
  memory_.RefuseCall(2, EINVAL, Refuse::kOnce, VmCall::kPurge);
  EXPECT_EQ(Purge(), 16 * kMiB);
  ExpectAllAreFree(pieces);
}

// What is taken and put meanwhile is nothing that is being purged.
TEST_F(MetadataPoolPurgeTest, OthersTakeAndPutMeanwhile) {
  const Pieces pieces = TakePages(20);
  Put(pieces);
  Pieces others;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    std::thread([&] {
      for (int i = 0; i < 100; ++i) {
        others.push_back(pool_.Take());
        std::memset(others.back(), i, kPieceBytes);
      }
      for (int i = 0; i < 50; ++i) {
        pool_.Put(others.back());
        others.pop_back();
      }
      pool_.CheckInvariants();
    }).join();
  });
  EXPECT_EQ(Purge(), 19 * page_bytes_);
  memory_.WatchLongCalls(nullptr);
  ASSERT_EQ(others.size(), 50U);
  for (int i = 0; i < 50; ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(others[i]);
    EXPECT_TRUE(std::all_of(bytes, bytes + kPieceBytes,
                            [i](unsigned char byte) { return byte == i; }));
  }
  std::set<void*> all(others.begin(), others.end());
  for (std::size_t i = 0; i < pieces.size() + 50; ++i) {
    EXPECT_TRUE(all.insert(pool_.Take()).second);
  }
  pool_.CheckInvariants();
  for (void* piece : pieces) EXPECT_EQ(all.count(piece), 1U);
}

// A child of another thread's fork has all that is free, so the fork waits; and
// what waits is not kept waiting by calls of the kernel.
TEST_F(MetadataPoolPurgeTest, AForkWaitsForTheEndOfAPurge) {
  const Pieces pieces = TakePages(40 * kMiB / page_bytes_);
  Put(pieces);
  std::optional<TestThread> forker;
  std::atomic<bool> has_locks = false;
  int status = -1;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (forker) return;
    forker.emplace([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      pool_.LockPurgeForFork();
      pool_.LockForFork();
      has_locks = true;
      const pid_t child = fork();
      if (child == 0) {
        pool_.ResetLockAfterFork();
        const std::size_t mapped_bytes = pool_.mapped_bytes();
        for (std::size_t i = 0; i < pieces.size(); ++i) pool_.Take();
        _exit(pool_.mapped_bytes() == mapped_bytes ? 0 : 1);
      }
      pool_.UnlockAfterFork();
      waitpid(child, &status, 0);
    });
    AwaitThat([&] { return has_locks || forker->WaitsFor(pool_); });
    EXPECT_FALSE(has_locks);
  });
  EXPECT_EQ(Purge(), 16 * kMiB);
  memory_.WatchLongCalls(nullptr);
  forker->Join();
  EXPECT_EQ(status, 0);
  ExpectAllAreFree(pieces);
}

// Nor by threads that purge one after the other.
TEST_F(MetadataPoolPurgeTest, NobodyBeginsToPurgeWhileAForkWaits) {
  const Pieces pieces = TakePages(40 * kMiB / page_bytes_);
  Put(pieces);
  std::optional<TestThread> forker;
  std::vector<std::thread> others;
  std::atomic<bool> has_lock = false;
  std::atomic<std::size_t> others_bytes = 0;
  std::atomic<int> others_purges = 0;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (forker) return;
    forker.emplace([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      pool_.LockPurgeForFork();
      has_lock = true;
      for (std::thread& other : others) other.join();
      pool_.UnlockAfterFork();
    });
    AwaitThat([&] { return forker->WaitsFor(pool_); });
    for (int i = 0; i < 4; ++i) {
      others.emplace_back([&] {
        while (!has_lock) {
          others_bytes += pool_.Purge(/*only_many=*/false);
          ++others_purges;
        }
      });
    }
    AwaitThat([&] { return others_purges >= 1000; });
  });
  EXPECT_EQ(pool_.Purge(/*only_many=*/false), 16 * kMiB);
  forker->Join();
  memory_.WatchLongCalls(nullptr);
  EXPECT_EQ(others_bytes, 0U);
  ExpectAllAreFree(pieces);
}

// In a forked child the thread that purges goes on only if it is the one that
// forked.
TEST_F(MetadataPoolPurgeTest, AChildOfAForkMeanwhileGoesOn) {
  const Pieces pieces = TakePages(4);
  Put(pieces);
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    ForkAndGoOnInChild(pool_);
    void* const piece = pool_.Take();
    EXPECT_EQ(std::count(pieces.begin(), pieces.end(), piece), 0);
    pool_.CheckInvariants();
  });
  EXPECT_EQ(Purge(), 3 * page_bytes_);
  ExpectAllAreFree(pieces);
}

TEST_F(MetadataPoolPurgeTest, OnlyManyAndManyMoreThanBeforeAreWorthIt) {
  const std::size_t kMany = 1 * kMiB / page_bytes_;
  const auto pages = [&](const Pieces& pieces, std::size_t from,
                         std::size_t to) {
    return Pieces(pieces.begin() + from * page_pieces_,
                  pieces.begin() + to * page_pieces_);
  };
  const Pieces pieces = TakePages(4 * kMany);
  Put(pages(pieces, 0, kMany - 1));
  EXPECT_EQ(Purge(/*only_many=*/true), 0U);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 0U);
  Put(pages(pieces, kMany - 1, kMany));
  EXPECT_EQ(Purge(/*only_many=*/true), (kMany - 1) * page_bytes_);
  ExpectAllAreFree(pages(pieces, 0, kMany));
  // A Purge that is refused leaves all that is free.
  memory_.RefuseCall(1, EINVAL, Refuse::kOnce, VmCall::kPurge);
  Put(pages(pieces, 0, 2 * kMany));
  EXPECT_EQ(Purge(/*only_many=*/true), 0U);
  Put(pages(pieces, 2 * kMany, 3 * kMany));
  EXPECT_EQ(Purge(/*only_many=*/true), 0U);
  Put(pages(pieces, 3 * kMany, 3 * kMany + 1));
  EXPECT_EQ(Purge(/*only_many=*/true), 3 * kMany * page_bytes_);
}

TEST_F(MetadataPoolTest, ManyThreadsMayUseIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::vector<unsigned char*> mine;
      for (int i = 0; i < 4000; ++i) {
        if (mine.size() < 50) {
          auto* piece = static_cast<unsigned char*>(pool_.Take());
          ASSERT_NE(piece, nullptr);
          std::memset(piece, t + 1, kPieceBytes);
          mine.push_back(piece);
        } else {
          for (unsigned char* piece : mine) {
            ASSERT_EQ(piece[0], t + 1);
            ASSERT_EQ(piece[kPieceBytes - 1], t + 1);
            pool_.Put(piece);
          }
          mine.clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool_.CheckInvariants();
  EXPECT_LE(pool_.mapped_bytes(), 4 * 50 * kPieceBytes + 64 * kKiB);
}

}  // namespace
}  // namespace hakmem
