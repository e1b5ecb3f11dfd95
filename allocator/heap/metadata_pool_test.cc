#include "allocator/heap/metadata_pool.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr std::size_t kPieceBytes = 512;
constexpr std::size_t kWindowBytes = 1 * kMiB;

void ForkAndGoOnInChild(MetadataPool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
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

// Until a thread came while the lock was held, as it does as a rule.
void WaitForPool(MetadataPool& pool) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  while (pool.lock_waits() == 0) {
    pool.LockForFork();
    std::atomic<bool> began = false;
    std::thread other([&] {
      began = true;
      pool.Put(pool.Take());
    });
    while (!began) std::this_thread::yield();
    std::this_thread::yield();
    pool.UnlockAfterFork();
    other.join();
  }
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
