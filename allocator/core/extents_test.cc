#include "allocator/lookup/extents.h"

#include <cstdint>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using State = BlockExtent::State;

// A size of each route, and some of several units.
constexpr std::size_t kSizes[] = {
    1,      31,     60,     100,     1023,     1024,      5000,
    20'000, 65'535, 65'536, 200'000, 3 * kMiB, 40 * kMiB, 300 * kMiB};

class ExtentsTest : public testing::Test {
 protected:
  ~ExtentsTest() override { SetOnMisuse(OnMisuse::kAbort); }

  Address Allocate(std::size_t bytes) {
    return reinterpret_cast<Address>(
        test_.allocator->Allocate(test_.self, bytes));
  }
  void Free(Address block) {
    test_.allocator->Free(test_.self, reinterpret_cast<void*>(block));
  }
  BlockExtent Find(Address address) const { return finder_.Find(address); }
  void ExpectLive(Address address, Address start, std::size_t bytes) const {
    const BlockExtent extent = Find(address);
    ASSERT_EQ(extent.state, State::kLive) << address - start << " of " << bytes;
    ASSERT_EQ(extent.start, start);
    ASSERT_EQ(extent.size_bytes, bytes);
  }

  TestAllocator<kHardened> test_;
  ExtentHints hints_;
  const ExtentFinder finder_{test_.allocator->ace(), hints_};
};

TEST_F(ExtentsTest, EveryByteOfALiveBlockFindsIt) {
  for (const std::size_t bytes : kSizes) {
    const Address block = Allocate(bytes);
    const std::size_t step = bytes < 70'000 ? 1 : bytes / 1013;
    for (std::size_t at = 0; at < bytes; at += step) {
      ASSERT_NO_FATAL_FAILURE(ExpectLive(block + at, block, bytes));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectLive(block + bytes - 1, block, bytes));
    // Each has a byte more.
    ASSERT_NO_FATAL_FAILURE(ExpectLive(block + bytes, block, bytes));
    if (bytes < kSuperSlabBytes) Free(block);
  }
}

TEST_F(ExtentsTest, AllowsWhatFits) {
  const Address block = Allocate(60);
  const BlockExtent extent = Find(block + 10);
  EXPECT_TRUE(extent.Allows(block, 60));
  EXPECT_TRUE(extent.Allows(block + 59, 1));
  EXPECT_TRUE(extent.Allows(block + 60, 0));
  EXPECT_FALSE(extent.Allows(block, 61));
  EXPECT_FALSE(extent.Allows(block + 60, 1));
  EXPECT_FALSE(extent.Allows(block + 61, 0));
  EXPECT_FALSE(extent.Allows(block + 1, SIZE_MAX));
  EXPECT_TRUE(finder_.IsInTiny(block + 1, 59));
  EXPECT_FALSE(finder_.IsInTiny(block + 1, 60));
  const Address large = Allocate(5000);
  EXPECT_FALSE(finder_.IsInTiny(large, 1));
}

TEST_F(ExtentsTest, PoolBlocksAndTheSpanFoundLastHaveAWayOfTheirOwn) {
  for (const std::size_t bytes : {5000UL, 64'000UL, 200'000UL, 3 * kMiB}) {
    const Address block = Allocate(bytes);
    // A span is found by the search first, in each of its units.
    for (Address at = block; at < block + bytes; at += kUnitBytes) {
      ASSERT_TRUE(finder_.Allows(at, 1));
      EXPECT_TRUE(finder_.IsInPoolOrSpan(at, block + bytes - at)) << bytes;
      EXPECT_FALSE(finder_.IsInPoolOrSpan(at, block + bytes - at + 1)) << bytes;
      EXPECT_FALSE(finder_.IsInPoolOrSpan(at, SIZE_MAX)) << bytes;
    }
    EXPECT_TRUE(finder_.IsInPoolOrSpan(block + bytes - 1, 1)) << bytes;
    EXPECT_FALSE(finder_.IsInPoolOrSpan(block + bytes + 1, 0)) << bytes;
    Free(block);
    EXPECT_FALSE(finder_.IsInPoolOrSpan(block, 1)) << bytes;
  }
  const Address span = Allocate(200'000);
  ExtentHints none;
  const ExtentFinder fresh(test_.allocator->ace(), none);
  EXPECT_FALSE(fresh.IsInPoolOrSpan(span + 10, 1));
  EXPECT_FALSE(finder_.IsInPoolOrSpan(Allocate(60), 1));
  const Address huge = Allocate(300 * kMiB);
  EXPECT_TRUE(finder_.Allows(huge, 1));
  EXPECT_FALSE(finder_.IsInPoolOrSpan(huge, 1));
}

TEST_F(ExtentsTest, AFreedBlockOfASlabIsKnownAsNotLive) {
  for (const std::size_t bytes : {60, 1000, 5000, 65'000}) {
    const Address neighbour = Allocate(bytes);
    const Address block = Allocate(bytes);
    Free(block);
    EXPECT_EQ(Find(block + 7).state, State::kNotLive) << bytes;
    EXPECT_FALSE(Find(block + 7).Allows(block + 7, 1));
    EXPECT_FALSE(finder_.IsInTiny(block + 7, 1));
    ExpectLive(neighbour + 7, neighbour, bytes);
  }
}

TEST_F(ExtentsTest, OfAFreedLargeBlockNothingIsKnown) {
  for (const std::size_t bytes : {200'000UL, 300 * kMiB}) {
    const Address block = Allocate(bytes);
    ExpectLive(block + bytes / 2, block, bytes);
    Free(block);
    EXPECT_EQ(Find(block + bytes / 2).state, State::kUnknown) << bytes;
    EXPECT_TRUE(Find(block).Allows(block, SIZE_MAX));
  }
}

TEST_F(ExtentsTest, PlacesWithoutABlock) {
  const Address tiny = Allocate(1000);
  const Address unit = tiny & ~(Address{kUnitBytes} - 1);
  // 1,024 bytes divide a unit; 896 do not.
  EXPECT_EQ(Find(unit + kUnitBytes - 1).state, State::kUnknown);
  const Address other = Allocate(890);
  const Address end = (other & ~(Address{kUnitBytes} - 1)) + kUnitBytes;
  EXPECT_EQ(Find(end - 1).state, State::kUnknown);
  const Region& region = test_.allocator->ace().region();
  const Region::Window blocks = region.windows()[0];
  EXPECT_EQ(Find(blocks.begin + blocks.bytes - 1).state, State::kUnknown);
  EXPECT_EQ(Find(region.coarse().view().base - 1).state, State::kUnknown);
  EXPECT_EQ(Find(region.huge().begin).state, State::kUnknown);
}

TEST_F(ExtentsTest, FollowsRealloc) {
  void* block = test_.allocator->Allocate(test_.self, 1);
  for (const std::size_t bytes :
       {10, 40, 30, 2000, 1500, 100'000, 150'000, 90'000, 5000, 12}) {
    block = test_.allocator->Reallocate(test_.self, block, bytes);
    const auto start = reinterpret_cast<Address>(block);
    ExpectLive(start + bytes / 2, start, bytes);
  }
}

// What is between a block's start and the address is not looked through each
// time, and cannot be here.
TEST_F(ExtentsTest, LongBlocksInTurn) {
  constexpr std::size_t kBytes = 200 * kMiB;
  const Zone& coarse = test_.allocator->ace().region().coarse();
  const std::size_t page = test_.memory.PageBytes();
  const Address blocks[] = {Allocate(kBytes), Allocate(kBytes)};
  Address between[2];
  Address places[2];
  for (int i = 0; i < 2; ++i) {
    // In units that have a hint in common.
    places[i] = (blocks[i] & ~(Address{4 * kMiB} - 1)) + kBytes - 8 * kMiB;
    between[i] =
        RoundUp<Address>(reinterpret_cast<Address>(
                             &coarse.unit_record(coarse.UnitOf(blocks[i])) + 1),
                         page);
    ASSERT_NO_FATAL_FAILURE(ExpectLive(places[i], blocks[i], kBytes));
  }
  for (const Address records : between) {
    ASSERT_TRUE(test_.memory.Protect(records, page).ok());
  }
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_TRUE(finder_.Allows(places[turn % 2], 1));
  }
  for (const Address records : between) {
    ASSERT_TRUE(test_.memory.Unprotect(records, page).ok());
  }
}

// Hints are of blocks that have gone, and of others.
TEST_F(ExtentsTest, ManyLargeBlocksThatComeAndGo) {
  std::mt19937 random(1);
  struct Block {
    Address start;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  for (int round = 0; round < 3000; ++round) {
    if (blocks.size() < 40) {
      const std::size_t bytes = 65'536 + random() % (4 * kMiB);
      blocks.push_back({Allocate(bytes), bytes});
    } else {
      const std::size_t index = random() % blocks.size();
      Free(blocks[index].start);
      blocks[index] = blocks.back();
      blocks.pop_back();
    }
    for (int i = 0; i < 10 && !blocks.empty(); ++i) {
      const Block& block = blocks[random() % blocks.size()];
      const std::size_t at = random() % block.bytes;
      const bool beyond =
          finder_.IsInPoolOrSpan(block.start + at, block.bytes - at + 1);
      ASSERT_FALSE(beyond) << at << " of " << block.bytes;
      ASSERT_NO_FATAL_FAILURE(
          ExpectLive(block.start + at, block.start, block.bytes));
    }
  }
}

TEST_F(ExtentsTest, Sentences) {
  SetOnMisuse(OnMisuse::kLog);
  const Address block = Allocate(56);
  const auto report = [&](Address at, std::size_t bytes, bool written) {
    testing::internal::CaptureStderr();
    ReportCopy(test_.allocator->ace(), Find(at), at, bytes, written,
               HeapOfThread<kHardened>::ReportFor(test_.self, nullptr,
                                                  PointerUse::kMemcpy));
    const std::string said = testing::internal::GetCapturedStderr();
    return std::regex_replace(said.substr(0, said.find('\n')),
                              std::regex("0x[0-9a-f]+"), "0xP");
  };
  EXPECT_EQ(report(block + 10, 80, true),
            "hakmem: misuse: overflow of 0xP (memcpy of 80 bytes to byte 10 of "
            "a block of 56 bytes, class 64, owner heap 1)");
  EXPECT_EQ(report(block, 57, false),
            "hakmem: misuse: read past the end of 0xP (memcpy of 57 bytes from "
            "byte 0 of a block of 56 bytes, class 64, owner heap 1)");
  Free(block);
  EXPECT_EQ(report(block + 3, 1, true),
            "hakmem: misuse: write after free of 0xP (memcpy of 1 bytes to "
            "byte 3, class 64, owner heap 1, state free)");
  EXPECT_EQ(report(block + 3, 1, false),
            "hakmem: misuse: read after free of 0xP (memcpy of 1 bytes from "
            "byte 3, class 64, owner heap 1, state free)");
}

}  // namespace
}  // namespace hakmem
