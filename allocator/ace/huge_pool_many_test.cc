// HugePool with many thousand blocks, whose memory is pretended.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "allocator/ace/huge_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/test_waits.h"
#include "allocator/superslab/block_tables.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Maps the tables, and of blocks nothing.
class PretendedMemory final : public VirtualMemory {
 public:
  void Pretend(Region::Window blocks) { blocks_ = blocks; }

  std::size_t PageBytes() const override { return linux_.PageBytes(); }
  VmStatus MapAt(Address address, std::size_t bytes) override {
    if (address - blocks_.begin < blocks_.bytes) return {};
    return linux_.MapAt(address, bytes);
  }
  VmStatus MapBlock(Address address, std::size_t bytes) override {
    return MapAt(address, bytes);
  }
  VmStatus Reserve(Address, std::size_t) override { return {}; }
  VmStatus Protect(Address, std::size_t) override { return {}; }
  VmStatus Unprotect(Address, std::size_t) override { return {}; }
  VmStatus MapClosed(Address, std::size_t) override { return {}; }
  VmStatus Close(Address, std::size_t) override { return {}; }
  VmStatus Open(Address, std::size_t) override { return {}; }
  bool ClosingSplits() const override { return true; }
  VmStatus FindResident(Address, std::size_t, unsigned char*) override {
    return {};
  }
  std::size_t MaxMappings() override { return 1; }
  bool IsTaken(Address, std::size_t) override { return false; }
  VmStatus Unmap(Address, std::size_t) override {
    if (on_unmap) on_unmap();
    return {};
  }
  VmStatus Purge(Address, std::size_t) override { return {}; }
  void AskForHugePages(Address, std::size_t) override {}
  void DeclineHugePages(Address, std::size_t) override {}
  void Populate(Address, std::size_t) override {}
  VmStatus Move(Address, Address, std::size_t, bool) override { return {}; }
  VmStatus Renew(Address, std::size_t) override { return {}; }
  std::uint64_t Random() override { return linux_.Random(); }
  std::uint64_t NowMs() override { return 0; }
  AddressRange RegionRange() const override { return fake_.RegionRange(); }

  std::function<void()> on_unmap;

 private:
  LinuxVirtualMemory linux_;
  // Knows where sanitizers leave room.
  FakeVirtualMemory fake_;
  Region::Window blocks_;
};

struct PretendedPool {
  PretendedPool() {
    region.Place(memory);
    memory.Pretend(region.huge());
    pool.Place(region, memory.PageBytes());
  }

  PretendedMemory memory;
  Region region;
  FutexLock lock;
  TouchedPages pages{memory};
  HugePool pool{lock, pages, memory};
};

TEST(HugePoolManyTest, PlacesOfFreedOnesServeAgain) {
  // Where addresses are few, so are blocks.
  constexpr int kBlocks = kThreadSanitizer ? 50 : 20'000;
  for (const std::size_t stride : {1, 3, 100}) {
    PretendedPool pretended;
    HugePool& pool = pretended.pool;
    std::vector<Address> blocks;
    const auto grant = [&](std::size_t frames) {
      const Address block =
          pool.Grant(frames * kSuperSlabBytes, kSuperSlabBytes).address;
      ASSERT_NE(block, 0U);
      blocks.push_back(block);
    };
    for (int i = 0; i < kBlocks; ++i) grant(stride);
    pool.CheckInvariants();
    std::mt19937_64 random(stride);
    for (int i = 0; i < kBlocks / 2; ++i) {
      const std::size_t chosen = random() % blocks.size();
      pool.Release(blocks[chosen]);
      blocks[chosen] = blocks.back();
      blocks.pop_back();
    }
    pool.CheckInvariants();
    // Half of them, and longer ones that fit where several were.
    const Address end = std::ranges::max(blocks);
    for (int i = 0; i < kBlocks / 4; ++i) {
      grant(stride);
      EXPECT_LT(blocks.back(), end);
    }
    for (int i = 0; i < kBlocks / 50; ++i) {
      grant(2 * stride);
      EXPECT_LT(blocks.back(), end);
    }
    pool.CheckInvariants();
    for (const Address block : blocks) pool.Release(block);
    pool.CheckInvariants();
  }
}

// However many gaps are too short, a call looks at a bounded number of them.
TEST(HugePoolManyTest, ManyShortGapsAreNotWalked) {
  constexpr int kGaps = 10'000;
  PretendedPool pretended;
  HugePool& pool = pretended.pool;
  const Region& region = pretended.region;
  if (region.huge().bytes < 256 * kGiB) {
    GTEST_SKIP() << "addresses are few here";
  }
  const auto grant = [&](std::size_t frames) {
    return pool.Grant(frames * kSuperSlabBytes, kSuperSlabBytes).address;
  };
  std::vector<Address> short_ones;
  for (int i = 0; i < kGaps; ++i) {
    short_ones.push_back(grant(3));
    grant(1);
  }
  const Address behind_all = grant(10);
  const Address long_one = grant(10);
  const Address last = grant(1);
  for (const Address block : short_ones) pool.Release(block);
  pool.Release(long_one);
  EXPECT_EQ(grant(3), short_ones[0]);
  EXPECT_GT(grant(8), last);
  pool.CheckInvariants();
  // Where nothing is free behind all blocks, all gaps are looked at.
  const Address end = region.huge().begin + region.huge().bytes;
  const std::size_t rest = (end - last) / kSuperSlabBytes - 20;
  ASSERT_GT(grant(rest), last);
  EXPECT_EQ(grant(10), long_one);
  pool.Release(behind_all);
  EXPECT_EQ(grant(10), behind_all);
  pool.CheckInvariants();
}

// Who walks through all blocks may find one freed when it asks for the next.
// The records of blocks far before are not read then: here they cannot be.
TEST(HugePoolManyTest, TheNextBlockIsFoundFromNearby) {
  constexpr std::size_t kBlocks = 100;
  constexpr std::size_t kFrames = 200;  // their records lie pages apart
  PretendedPool pretended;
  HugePool& pool = pretended.pool;
  const Region& region = pretended.region;
  if (region.huge().bytes < 256 * kGiB) {
    GTEST_SKIP() << "addresses are few here";
  }
  std::vector<Address> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(
        pool.Grant(kFrames * kSuperSlabBytes, kSuperSlabBytes).address);
    ASSERT_NE(blocks.back(), 0U);
  }
  const HugeTables tables = pool.Describe();
  auto* const records = *static_cast<char* const*>(tables.records);
  const std::size_t far_bytes = RoundDown(
      (blocks[kBlocks / 2] - blocks[0]) / kSuperSlabBytes * tables.record_bytes,
      pretended.memory.PageBytes());
  ASSERT_EQ(mprotect(records, far_bytes, PROT_NONE), 0);
  const auto expect = [&](Address address, std::size_t next) {
    EXPECT_EQ(pool.NextBlock(address), blocks[next]);
  };
  constexpr std::size_t kLast = kBlocks - 1;
  expect(blocks[kLast - 3], kLast - 2);
  expect(blocks[kLast - 3] + 1, kLast - 2);
  pool.Release(blocks[kLast - 2]);
  expect(blocks[kLast - 3], kLast - 1);
  expect(blocks[kLast - 2], kLast - 1);
  pool.Release(blocks[kLast - 3]);
  expect(blocks[kLast - 3], kLast - 1);
  expect(blocks[kLast - 1] - 1, kLast - 1);
  EXPECT_EQ(pool.NextBlock(blocks[kLast]), 0U);
  EXPECT_EQ(pool.NextBlock(region.huge().begin + region.huge().bytes - 1), 0U);
  ASSERT_EQ(mprotect(records, far_bytes, PROT_READ | PROT_WRITE), 0);
  pool.Release(blocks[0]);
  EXPECT_EQ(pool.NextBlock(0), blocks[1]);
  EXPECT_EQ(pool.NextBlock(blocks[0]), blocks[1]);
  pool.CheckInvariants();
}

// The records of blocks behind the one that was being freed cannot be read in
// the child.
TEST(HugePoolManyTest, AForksChildLooksNoFurtherThanItMust) {
  constexpr std::size_t kBytes = 200 * kSuperSlabBytes;
  PretendedPool pretended;
  HugePool& pool = pretended.pool;
  std::vector<Address> blocks;
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(pool.Grant(kBytes, kSuperSlabBytes).address);
  }
  std::atomic<bool> unmaps = false;
  std::atomic<bool> is_forked = false;
  pretended.memory.on_unmap = [&] {
    unmaps = true;
    AwaitThat([&] { return is_forked.load(); });
  };
  TestThread other([&] {
    const FutexLockHolder hold(pretended.lock);
    EXPECT_EQ(pool.Release(blocks[0]), kBytes);
  });
  AwaitThat([&] { return unmaps.load(); });
  const pid_t child = fork();
  if (child == 0) {
    pretended.memory.on_unmap = nullptr;
    const HugeTables tables = pool.Describe();
    const auto record = [&](Address block) {
      return *static_cast<char* const*>(tables.records) +
             (block - blocks[0]) / kSuperSlabBytes * tables.record_bytes;
    };
    // The next one is told that it is the first now.
    const Address far = RoundUp(reinterpret_cast<Address>(record(blocks[2])),
                                pretended.memory.PageBytes());
    const auto end = reinterpret_cast<Address>(record(blocks.back()));
    EXPECT_EQ(mprotect(reinterpret_cast<void*>(far), end - far, PROT_NONE), 0);
    EXPECT_EQ(pool.EndReleasesAfterFork(), kBytes);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  is_forked = true;
  other.Join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  pool.CheckInvariants();
}

class HugePoolForeignTest : public testing::Test {
 protected:
  HugePoolForeignTest() {
    region_.Place(memory_);
    pool_.Place(region_, memory_.PageBytes());
  }
  Address Grant() {
    return pool_.Grant(memory_.PageBytes(), kSuperSlabBytes).address;
  }

  FakeVirtualMemory memory_;
  Region region_;
  FutexLock lock_;
  TouchedPages pages_{memory_};
  HugePool pool_{lock_, pages_, memory_};
};

TEST_F(HugePoolForeignTest, StepsOverATebibyte) {
  if (region_.huge().bytes < 2048 * kGiB) {
    GTEST_SKIP() << "addresses are few here";
  }
  constexpr std::size_t kForeignBytes = 1024 * kGiB;
  const Address begin = region_.huge().begin;
  ASSERT_TRUE(memory_.Reserve(begin, kForeignBytes).ok());
  EXPECT_GE(Grant(), begin + kForeignBytes);
  EXPECT_LE(memory_.calls(VmCall::kMap), 80U);
  pool_.CheckInvariants();
}

// As many gaps as you like, each with something else in it.
TEST_F(HugePoolForeignTest, LeavesTheGapsAlone) {
  constexpr std::size_t kGaps = 100;
  std::vector<Address> blocks;
  for (std::size_t i = 0; i < 2 * kGaps; ++i) blocks.push_back(Grant());
  for (std::size_t i = 0; i < 2 * kGaps; i += 2) {
    pool_.Release(blocks[i]);
    ASSERT_TRUE(memory_.MapAt(blocks[i], memory_.PageBytes()).ok());
  }
  for (int i = 0; i < 10; ++i) EXPECT_GT(Grant(), blocks.back());
  pool_.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
