#include "allocator/superslab/zone.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr ZoneShape kShape = {.granule_shift = 4, .descriptor_bytes = 576};
constexpr FrameIndex kFrames = 160;

class ZoneTest : public testing::Test {
 protected:
  ZoneTest() : base_(memory_.RegionRange().begin + 64 * kSuperSlabBytes) {
    Place(zone_);
  }
  // The tables behind the blocks, one behind the other.
  void Place(Zone& zone) {
    Address tables[Zone::kTableWindows];
    Address next = base_ + (kFrames + 1) * kSuperSlabBytes;
    for (unsigned i = 0; i < Zone::kTableWindows; ++i) {
      tables[i] = next;
      next += TableBytes(i);
    }
    zone.Place(base_, kFrames, tables, memory_.PageBytes());
  }
  std::size_t TableBytes(unsigned index) const {
    return Zone::TableBytes(kShape, index, kFrames, memory_.PageBytes());
  }
  Zone::Extension Extend(FrameIndex frames) {
    const Zone::Extension extension = zone_.Extend(memory_, frames);
    zone_.CheckInvariants();
    return extension;
  }
  // Something else takes part of the frames.
  void Occupy(FrameIndex frame, FrameIndex frames) {
    ASSERT_TRUE(memory_
                    .MapAt(zone_.FrameAddress(frame) + kUnitBytes,
                           frames * kSuperSlabBytes - kUnitBytes)
                    .ok());
  }
  bool InZone(Address address) const {
    return zone_.view().Granule(address, kShape.granule_shift) <
           zone_.view().limit_granules.load(std::memory_order_relaxed);
  }

  FakeVirtualMemory memory_;
  Zone zone_{kShape};
  const Address base_;
};

TEST_F(ZoneTest, StartsWithoutFrames) {
  EXPECT_EQ(zone_.frame_count(), 0U);
  EXPECT_FALSE(InZone(base_));
  EXPECT_FALSE(zone_.Contains(base_));
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
  zone_.CheckInvariants();
}

TEST_F(ZoneTest, PlacesFramesSideBySide) {
  Zone::Extension extension = Extend(1);
  EXPECT_EQ(extension.first, 0U);
  EXPECT_EQ(extension.frames, 1U);
  extension = Extend(3);
  EXPECT_EQ(extension.first, 1U);
  EXPECT_EQ(extension.frames, 3U);
  EXPECT_EQ(zone_.frame_count(), 4U);
  EXPECT_TRUE(memory_.IsMapped(base_, 4 * kSuperSlabBytes));
  EXPECT_FALSE(
      memory_.IsMapped(base_ + 4 * kSuperSlabBytes, memory_.PageBytes()));
}

TEST_F(ZoneTest, OneComparisonRejectsWhatIsNotAGranule) {
  Extend(2);
  const Address end = base_ + 2 * kSuperSlabBytes;
  EXPECT_TRUE(InZone(base_));
  EXPECT_TRUE(InZone(base_ + 16));
  EXPECT_TRUE(InZone(end - 16));
  for (Address low = 1; low < 16; ++low) {
    EXPECT_FALSE(InZone(base_ + low));
    EXPECT_FALSE(InZone(base_ - low));
    EXPECT_FALSE(InZone(end - low));
  }
  EXPECT_FALSE(InZone(base_ - 16));
  EXPECT_FALSE(InZone(end));
  EXPECT_FALSE(InZone(0));
  EXPECT_FALSE(InZone(~Address{0}));
  EXPECT_FALSE(InZone(~Address{15}));
  EXPECT_TRUE(zone_.Contains(end - 1));
  EXPECT_FALSE(zone_.Contains(end));
  EXPECT_FALSE(zone_.Contains(base_ - 1));
}

TEST_F(ZoneTest, EveryUnitHasItsOwnTables) {
  constexpr FrameIndex kUsed = 5;
  Extend(kUsed);
  for (UnitIndex unit = 0; unit < FirstUnitOfFrame(kUsed); ++unit) {
    EXPECT_EQ(zone_.UnitOf(zone_.UnitAddress(unit)), unit);
    EXPECT_EQ(zone_.UnitOf(zone_.UnitAddress(unit) + kUnitBytes - 1), unit);
    EXPECT_EQ(zone_.unit_record(unit).load(), 0U);
    EXPECT_EQ(*zone_.UnitHeaders(unit), kNoBlock);
    zone_.unit_record(unit) = unit + 1;
    std::memset(zone_.UnitHeaders(unit), static_cast<int>(unit % 251 + 1),
                zone_.UnitHeaderBytes());
    std::memset(zone_.UnitDescriptor(unit), static_cast<int>(unit % 241 + 1),
                kShape.descriptor_bytes);
  }
  for (UnitIndex unit = 0; unit < FirstUnitOfFrame(kUsed); ++unit) {
    EXPECT_EQ(zone_.unit_record(unit).load(), unit + 1);
    const Address last = zone_.UnitAddress(unit) + kUnitBytes - 16;
    EXPECT_EQ(zone_.header(zone_.UnitAddress(unit)).load(), unit % 251 + 1);
    EXPECT_EQ(zone_.header(last).load(), unit % 251 + 1);
    const auto* descriptor =
        static_cast<const unsigned char*>(zone_.UnitDescriptor(unit));
    EXPECT_EQ(descriptor[0], unit % 241 + 1);
    EXPECT_EQ(descriptor[kShape.descriptor_bytes - 1], unit % 241 + 1);
  }
  zone_.CheckInvariants();
}

// Loads of entries that are used together must not wait for each other's
// stores (4 KiB aliasing).
TEST_F(ZoneTest, TablesDifferInTheirLowAddressBits) {
  const std::set<Address> low_bits = {
      base_ % 4096, reinterpret_cast<Address>(zone_.view().headers) % 4096,
      reinterpret_cast<Address>(&zone_.unit_record(0)) % 4096,
      reinterpret_cast<Address>(zone_.UnitDescriptor(0)) % 4096,
      reinterpret_cast<Address>(&zone_.super_slab(0)) % 4096};
  EXPECT_EQ(low_bits.size(), 5U);
}

TEST_F(ZoneTest, StepsOverForeignFrames) {
  Occupy(1, 2);
  EXPECT_EQ(Extend(1).first, 0U);
  const Zone::Extension extension = Extend(2);
  EXPECT_EQ(extension.first, 3U);
  EXPECT_EQ(extension.frames, 2U);
  EXPECT_EQ(zone_.frame_count(), 5U);
  EXPECT_EQ(zone_.super_slab(0).presence, Presence::kMapped);
  EXPECT_EQ(zone_.super_slab(1).presence, Presence::kForeign);
  EXPECT_EQ(zone_.super_slab(2).presence, Presence::kForeign);
  EXPECT_EQ(zone_.super_slab(3).presence, Presence::kMapped);
}

TEST_F(ZoneTest, StepsOverALongRangeInOneCall) {
  Occupy(0, 100);
  const std::uint64_t calls = memory_.calls(VmCall::kMap);
  const Zone::Extension extension = Extend(1);
  EXPECT_EQ(extension.frames, 1U);
  EXPECT_GE(extension.first, 100U);
  EXPECT_LT(extension.first, 100U + kFrames / 8);
  // Most of them are for tables.
  EXPECT_LE(memory_.calls(VmCall::kMap), calls + 60);
  zone_.CheckInvariants();
}

TEST_F(ZoneTest, StepsOverWhatIsInTheWayOfALaterFrame) {
  Occupy(40, 1);
  const std::uint64_t calls = memory_.calls(VmCall::kMap);
  EXPECT_EQ(Extend(64).frames, 64U);
  EXPECT_LE(memory_.calls(VmCall::kMap), calls + 24);
  zone_.CheckInvariants();
}

TEST_F(ZoneTest, EndsWithItsWindow) {
  Zone::Extension extension = Extend(kFrames + 1);
  EXPECT_TRUE(extension.exhausted);
  EXPECT_EQ(extension.frames, 0U);
  EXPECT_EQ(Extend(kFrames).frames, kFrames);
  extension = Extend(1);
  EXPECT_TRUE(extension.exhausted);
  EXPECT_EQ(zone_.frame_count(), kFrames);
  EXPECT_TRUE(InZone(base_ + kFrames * kSuperSlabBytes - 16));
}

// A table has no holes, so the frames behind cannot be had, and nobody asks for
// them again until the zone is opened again.
TEST_F(ZoneTest, EndsWhereSomethingLiesInATable) {
  constexpr FrameIndex kBefore = 9;
  const auto headers = reinterpret_cast<Address>(zone_.view().headers);
  const auto in_the_way = RoundDown<Address>(
      headers + (kBefore + 1) * (kSuperSlabBytes / 16), memory_.PageBytes());
  ASSERT_TRUE(memory_.MapAt(in_the_way, memory_.PageBytes()).ok());
  Zone::Extension extension = Extend(2 * kBefore);
  EXPECT_EQ(extension.status.error_number, EEXIST);
  for (FrameIndex frame = 0; frame < kBefore; ++frame) {
    EXPECT_EQ(Extend(1).first, frame);
  }
  EXPECT_EQ(Extend(1).status.error_number, EEXIST);
  EXPECT_EQ(zone_.capacity_frames(), kBefore);
  const std::uint64_t calls = memory_.calls(VmCall::kMap);
  extension = Extend(1);
  EXPECT_TRUE(extension.exhausted);
  EXPECT_EQ(memory_.calls(VmCall::kMap), calls);
  zone_.Reopen();
  EXPECT_EQ(Extend(1).status.error_number, EEXIST);
  ASSERT_TRUE(memory_.Unmap(in_the_way, memory_.PageBytes()).ok());
  zone_.Reopen();
  EXPECT_EQ(Extend(2 * kBefore).first, kBefore);
}

TEST_F(ZoneTest, LosesNothingWhicheverCallIsRefused) {
  bool tables_refused = false;
  bool frame_refused = false;
  for (std::uint64_t nth = 1;; ++nth) {
    FakeVirtualMemory memory;
    Zone zone(kShape);
    Place(zone);
    memory.RefuseCall(nth, ENOMEM, Refuse::kFromThenOn);
    const Zone::Extension extension = zone.Extend(memory, 2);
    zone.CheckInvariants();
    if (memory.refused() == 0) break;
    EXPECT_EQ(extension.frames, 0U);
    EXPECT_EQ(extension.status.error_number, ENOMEM);
    EXPECT_FALSE(extension.exhausted);
    EXPECT_EQ(zone.frame_count(), 0U);
    const bool frame = extension.status.bytes == 2 * kSuperSlabBytes;
    (frame ? frame_refused : tables_refused) = true;
    memory.RefuseNothing();
    EXPECT_EQ(zone.Extend(memory, 2).first, 0U);
    zone.CheckInvariants();
  }
  EXPECT_TRUE(tables_refused);
  EXPECT_TRUE(frame_refused);
}

TEST_F(ZoneTest, UnmapsAndMapsAgain) {
  Extend(3);
  auto* content = reinterpret_cast<char*>(zone_.FrameAddress(1));
  content[5] = 7;
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 1).ok());
  EXPECT_EQ(zone_.super_slab(1).presence, Presence::kUnmapped);
  EXPECT_FALSE(memory_.IsMapped(zone_.FrameAddress(1), kSuperSlabBytes));
  EXPECT_TRUE(memory_.IsMapped(zone_.FrameAddress(2), kSuperSlabBytes));
  ASSERT_TRUE(zone_.Remap(memory_, 1, 1).ok());
  EXPECT_EQ(zone_.super_slab(1).presence, Presence::kMapped);
  EXPECT_EQ(content[5], 0);
  zone_.CheckInvariants();
}

TEST_F(ZoneTest, MapsWithoutAccess) {
  ASSERT_EQ(zone_.Extend(memory_, 2, Access::kClosed).frames, 2U);
  EXPECT_TRUE(memory_.IsProtected(zone_.FrameAddress(0), 2 * kSuperSlabBytes));
  EXPECT_EQ(zone_.super_slab(1).closed_units, ~0U);
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 1).ok());
  EXPECT_EQ(zone_.super_slab(1).closed_units, 0U);
  ASSERT_TRUE(zone_.Remap(memory_, 1, 1, Access::kClosed).ok());
  EXPECT_EQ(zone_.super_slab(1).closed_units, ~0U);
  zone_.CheckInvariants();
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 1).ok());
  ASSERT_TRUE(zone_.Remap(memory_, 1, 1).ok());
  EXPECT_EQ(zone_.super_slab(1).closed_units, 0U);
  EXPECT_FALSE(memory_.IsAnyProtected(zone_.FrameAddress(1), kSuperSlabBytes));
}

TEST_F(ZoneTest, FrameStaysAsItIsWhenRefused) {
  Extend(2);
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_FALSE(zone_.UnmapFrame(memory_, 1).ok());
  EXPECT_EQ(zone_.super_slab(1).presence, Presence::kMapped);
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 1).ok());
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_FALSE(zone_.Remap(memory_, 1, 1).ok());
  EXPECT_EQ(zone_.super_slab(1).presence, Presence::kUnmapped);
  EXPECT_TRUE(zone_.Remap(memory_, 1, 1).ok());
}

TEST_F(ZoneTest, AnUnmappedFrameMayBeTakenByOthers) {
  Extend(2);
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 0).ok());
  Occupy(0, 1);
  EXPECT_EQ(zone_.Remap(memory_, 0, 1).error_number, EEXIST);
  EXPECT_EQ(zone_.super_slab(0).presence, Presence::kForeign);
  zone_.CheckInvariants();
}

TEST_F(ZoneTest, MapsSeveralAgainInOneCallOrNone) {
  Extend(4);
  for (FrameIndex frame = 0; frame < 4; ++frame) {
    ASSERT_TRUE(zone_.UnmapFrame(memory_, frame).ok());
  }
  const std::uint64_t calls = memory_.calls(VmCall::kMap);
  ASSERT_TRUE(zone_.Remap(memory_, 2, 2).ok());
  EXPECT_EQ(memory_.calls(VmCall::kMap), calls + 1);
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 2).ok());
  ASSERT_TRUE(zone_.UnmapFrame(memory_, 3).ok());
  Occupy(1, 1);
  EXPECT_EQ(zone_.Remap(memory_, 0, 3).error_number, EEXIST);
  EXPECT_EQ(zone_.super_slab(0).presence, Presence::kUnmapped);
  EXPECT_EQ(zone_.super_slab(1).presence, Presence::kForeign);
  EXPECT_EQ(zone_.super_slab(2).presence, Presence::kUnmapped);
  EXPECT_FALSE(memory_.IsMapped(zone_.FrameAddress(2), kSuperSlabBytes));
  EXPECT_TRUE(zone_.Remap(memory_, 2, 2).ok());
}

TEST_F(ZoneTest, CountsRunsOfMappedFrames) {
  EXPECT_EQ(zone_.mapped_runs(), 0U);
  Extend(5);
  Extend(2);
  EXPECT_EQ(zone_.mapped_runs(), 1U);
  const auto expect_after = [this](bool mapped, FrameIndex frame,
                                   std::size_t runs) {
    EXPECT_TRUE((mapped ? zone_.Remap(memory_, frame, 1)
                        : zone_.UnmapFrame(memory_, frame))
                    .ok());
    EXPECT_EQ(zone_.mapped_runs(), runs) << frame;
    zone_.CheckInvariants();
  };
  EXPECT_TRUE(zone_.IsBetweenMapped(1));
  EXPECT_FALSE(zone_.IsBetweenMapped(0));
  EXPECT_FALSE(zone_.IsBetweenMapped(6));
  expect_after(false, 1, 2);
  expect_after(false, 3, 3);
  EXPECT_FALSE(zone_.IsBetweenMapped(2));
  expect_after(false, 2, 2);
  expect_after(false, 6, 2);
  expect_after(true, 2, 3);
  expect_after(true, 3, 2);
  expect_after(false, 0, 1);
  Occupy(1, 1);
  EXPECT_EQ(zone_.Remap(memory_, 1, 1).error_number, EEXIST);
  EXPECT_EQ(zone_.mapped_runs(), 1U);
  Extend(1);
  EXPECT_EQ(zone_.mapped_runs(), 2U);
  zone_.CheckInvariants();
}

TEST_F(ZoneTest, CountsWhatItsTablesTake) {
  Extend(4);
  std::size_t table_bytes = 0;
  zone_.VisitTables([&table_bytes](const MetadataTable& table) {
    table_bytes += table.mapped_bytes();
  });
  EXPECT_EQ(table_bytes, memory_.mapped_bytes() - 4 * kSuperSlabBytes);
  EXPECT_LE(table_bytes, TableBytes(0) + TableBytes(1) + TableBytes(2));
}

}  // namespace
}  // namespace hakmem
