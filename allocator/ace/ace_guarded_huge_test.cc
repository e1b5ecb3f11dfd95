// Ace: huge pages where ranges have guards.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr Config kPlain = {.name = "plain", .separate_classes = true};
constexpr Config kClosed = {.name = "closed",
                            .separate_classes = true,
                            .guard_pages = true,
                            .closed_until_granted = true};
constexpr SizeClass kPool = ClassOf(60'000);
constexpr std::uint32_t kUnits = kClassLayouts[kPool].slab_units;
constexpr int kSlabs = 800;

// A heap of slabs, all of which are written.
class Heap {
 public:
  explicit Heap(const Config& config, std::uint64_t seed = 1) : memory_(seed) {
    memory_.UseGuardRegions();
    ace_->Start(HeapOptions(), config);
  }
  ~Heap() { ace_->CheckInvariants(); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Ace::Grant Slab() {
    return Used(ace_->GrantSlab(/*fine=*/false, SlabRange(kPool)), kUnits);
  }
  Ace::Grant Span(std::uint32_t units) {
    return Used(ace_->GrantSpan(units, kUnitBytes), units);
  }
  bool IsHuge(FrameIndex frame) const {
    return memory_.IsHuge(zone().FrameAddress(frame), kSuperSlabBytes);
  }
  bool IsAnyClosed(FrameIndex frame) const {
    return memory_.IsAnyProtected(zone().FrameAddress(frame), kSuperSlabBytes);
  }
  const Zone& zone() const { return ace_->region().coarse(); }
  FakeVirtualMemory& memory() { return memory_; }

 private:
  Ace::Grant Used(const Ace::Grant& grant, std::uint32_t units) {
    const Address begin = zone().UnitAddress(grant.first);
    const std::size_t bytes = units * kUnitBytes - grant.guard_bytes;
    std::memset(reinterpret_cast<void*>(begin), 1, bytes);
    EXPECT_FALSE(memory_.IsAnyProtected(begin, bytes));
    if (grant.guard_bytes != 0) {
      EXPECT_TRUE(memory_.IsProtected(begin + bytes, grant.guard_bytes));
    }
    return grant;
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
};

// And guards take no mappings.
TEST(AceGuardedHugeTest, FramesHaveThemAsWithoutGuardsFrom16MiBOn) {
  Heap plain(kPlain);
  Heap closed(kClosed, /*seed=*/2);
  for (int i = 0; i < kSlabs; ++i) {
    ASSERT_EQ(plain.Slab().first, closed.Slab().first);
  }
  const FrameIndex frames = plain.zone().frame_count();
  ASSERT_EQ(closed.zone().frame_count(), frames);
  constexpr FrameIndex kFirst = 16 * kMiB / kSuperSlabBytes;
  FrameIndex huge = 0;
  for (FrameIndex frame = 0; frame < frames; ++frame) {
    if (frame < kFirst) EXPECT_FALSE(closed.IsHuge(frame)) << frame;
    huge += closed.IsHuge(frame) ? 1 : 0;
  }
  EXPECT_TRUE(plain.IsHuge(kFirst - 2));
  EXPECT_GE(huge, (frames - kFirst) * 3 / 4);
  EXPECT_LE(closed.memory().mappings(), plain.memory().mappings());
}

TEST(AceGuardedHugeTest, SlabsThereHaveNoGuards) {
  Heap heap(kClosed);
  for (int i = 0; i < kSlabs; ++i) {
    const Ace::Grant slab = heap.Slab();
    EXPECT_EQ(slab.guard_bytes == 0, heap.IsHuge(FrameOfUnit(slab.first)));
  }
  for (FrameIndex frame = 0; frame < heap.zone().frame_count(); ++frame) {
    EXPECT_NE(heap.IsHuge(frame), heap.IsAnyClosed(frame)) << frame;
  }
}

TEST(AceGuardedHugeTest, SpansHaveTheirsEverywhere) {
  Heap heap(kClosed);
  for (int i = 0; i < kSlabs; ++i) {
    heap.Slab();
    if (i % 10 != 0) continue;
    for (const std::uint32_t units : {2U, 2 * kUnitsPerSuperSlab}) {
      EXPECT_EQ(heap.Span(units).guard_bytes, heap.memory().PageBytes());
    }
  }
}

// Who runs off the end of a stretch meets what was never granted, or a guard.
TEST(AceGuardedHugeTest, WhatFollowsThemIsClosedUntilItIsGranted) {
  Heap heap(kClosed);
  FrameIndex known = 0;
  FrameIndex stretches = 0;
  for (int i = 0; i < kSlabs; ++i) {
    const UnitIndex end = heap.Slab().first + kUnits;
    for (; known < heap.zone().frame_count(); ++known) {
      if (known == 0 || heap.IsHuge(known) || !heap.IsHuge(known - 1)) continue;
      ++stretches;
      const UnitIndex first = FirstUnitOfFrame(known);
      const UnitIndex from = std::max(first, end);
      EXPECT_TRUE(heap.memory().IsProtected(
          heap.zone().UnitAddress(from),
          (first + kUnitsPerSuperSlab - from) * kUnitBytes));
    }
  }
  EXPECT_GE(stretches, 5U);
}

}  // namespace
}  // namespace hakmem
