#include "allocator/superslab/block_header.h"

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(BlockHeaderTest, StateAndCodeComeBack) {
  for (unsigned state = 0; state < 4; ++state) {
    for (unsigned code = 0; code < 1U << kCodeBits; ++code) {
      const HeaderByte header =
          MakeHeader(static_cast<BlockState>(state), code);
      EXPECT_EQ(HeaderState(header), static_cast<BlockState>(state));
      EXPECT_EQ(HeaderCode(header), code);
      EXPECT_EQ(header == kNoBlock, state == 0 && code == 0);
    }
  }
}

TEST(BlockHeaderTest, LiveBitTurnsFreeIntoLive) {
  for (unsigned code = 1; code < 1U << kCodeBits; ++code) {
    EXPECT_EQ(MakeHeader(BlockState::kFree, code) + kLiveBit,
              MakeHeader(BlockState::kLive, code));
  }
}

TEST(BlockHeaderTest, OwnerAndLiveHeaderComeBack) {
  for (const HeapId owner : {HeapId{0}, HeapId{1}, HeapId{255}, HeapId{256},
                             kMaxHeapId, kSpanOwner, kNoHeapId}) {
    for (const HeaderByte live :
         {MakeHeader(BlockState::kLive, 1), MakeHeader(BlockState::kLive, 44),
          kLiveLarge}) {
      const UnitRecord record = MakeUnitRecord(owner, live);
      EXPECT_EQ(UnitOwner(record), owner);
      EXPECT_EQ(UnitLiveHeader(record), live);
      EXPECT_NE(record, 0U);
    }
  }
}

// In a unit of anybody's, and no other header is one.
TEST(BlockHeaderTest, SampledBlocks) {
  for (const HeapId owner : {HeapId{1}, kMaxHeapId, kSpanOwner}) {
    const UnitRecord record =
        MakeUnitRecord(owner, MakeHeader(BlockState::kLive, 30));
    for (unsigned header = 0; header < 256; ++header) {
      const auto byte = static_cast<HeaderByte>(header);
      EXPECT_EQ(IsSampledHeader(byte, record), byte == kSampledHeader);
      EXPECT_EQ(IsMarkedHeader(byte, record),
                byte == kSampledHeader || IsShrunkHeader(byte, record));
    }
    EXPECT_FALSE(IsShrunkHeader(kSampledHeader, record));
  }
  EXPECT_FALSE(IsSampledHeader(kSampledHeader, 0));
}

// The class of what was asked for is a smaller one, and the unit a slab's.
TEST(BlockHeaderTest, ShrunkBlocks) {
  const UnitRecord record =
      MakeUnitRecord(3, MakeHeader(BlockState::kLive, 30));
  EXPECT_TRUE(IsShrunkHeader(MakeHeader(BlockState::kLive, 29), record));
  EXPECT_TRUE(IsShrunkHeader(MakeHeader(BlockState::kLive, 1), record));
  for (const HeaderByte other :
       {kNoBlock, MakeHeader(BlockState::kLive, 0),
        MakeHeader(BlockState::kLive, 30), MakeHeader(BlockState::kLive, 31),
        MakeHeader(BlockState::kFree, 29),
        MakeHeader(BlockState::kQueued, 29)}) {
    EXPECT_FALSE(IsShrunkHeader(other, record));
  }
  const HeaderByte small = MakeHeader(BlockState::kLive, 1);
  EXPECT_FALSE(IsShrunkHeader(small, 0));
  EXPECT_FALSE(IsShrunkHeader(small, kSpanRecord));
}

// What ThreadHeap::tag() relies on: only the owner's own tag leaves a byte, and
// that byte is never the header of a place where no block starts.
TEST(BlockHeaderTest, OnlyTheOwnersTagLeavesAHeader) {
  constexpr HeapId kHeaps[] = {1, 2, 255, 256, 65536, kMaxHeapId, kNoHeapId};
  const HeaderByte live = MakeHeader(BlockState::kLive, 7);
  for (const HeapId owner : kHeaps) {
    for (const HeapId caller : kHeaps) {
      const UnitRecord left =
          MakeUnitRecord(owner, live) ^ (caller << kOwnerShift);
      EXPECT_EQ(left == live, owner == caller);
      EXPECT_EQ(left <= 0xff, owner == caller);
    }
    // A unit of nobody.
    EXPECT_GT(UnitRecord{0} ^ (owner << kOwnerShift), 0xffU);
  }
}

}  // namespace
}  // namespace hakmem
