// Memory that is inaccessible until it is granted.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr Config kOpen = {
    .name = "open", .separate_classes = true, .guard_pages = true};
constexpr Config kClosed = {.name = "closed",
                            .separate_classes = true,
                            .guard_pages = true,
                            .closed_until_granted = true};
const SizeClass kTiny = ClassOf(64);
const SizeClass kPool = ClassOf(4096);
const SizeClass kLongPool = ClassOf(60'000);

HeapOptions SmallPages() {
  HeapOptions options;
  options.huge_pages = static_cast<std::uint64_t>(HugePages::kOff);
  return options;
}

// One ACE on a kernel of its own.
struct Heap {
  explicit Heap(const Config& config, HeapOptions options = SmallPages(),
                std::size_t max_mappings = 65'530, std::uint64_t seed = 1)
      : memory(seed) {
    memory.SetNowMs(10'000);
    memory.SetMaxMappings(max_mappings);
    ace->Start(options, config);
  }
  ~Heap() { ace->CheckInvariants(); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Ace::Grant Slab(SizeClass size_class) {
    return Used(IsTiny(size_class), kClassLayouts[size_class].slab_units,
                ace->GrantSlab(IsTiny(size_class), SlabRange(size_class)));
  }
  Ace::Grant Span(std::uint32_t units, std::size_t alignment = kUnitBytes) {
    return Used(false, units, ace->GrantSpan(units, alignment));
  }
  // Writes to all of it but the guard.
  Ace::Grant Used(bool fine, std::uint32_t units, const Ace::Grant& grant) {
    if (grant.first == kNoUnit) return grant;
    std::memset(reinterpret_cast<void*>(ZoneOf(fine).UnitAddress(grant.first)),
                1, units * kUnitBytes - grant.guard_bytes);
    return grant;
  }
  const Zone& ZoneOf(bool fine) const {
    return fine ? ace->region().fine() : ace->region().coarse();
  }
  // How many bytes of a zone can be accessed.
  std::size_t OpenBytes(bool fine) const {
    const Zone& zone = ZoneOf(fine);
    std::size_t bytes = 0;
    for (Address page = zone.FrameAddress(0);
         page < zone.FrameAddress(zone.frame_count());
         page += memory.PageBytes()) {
      const bool open = memory.IsMapped(page, memory.PageBytes()) &&
                        !memory.IsProtected(page, memory.PageBytes());
      bytes += open ? memory.PageBytes() : 0;
    }
    return bytes;
  }
  std::uint64_t Protects() const { return memory.calls(VmCall::kProtect); }

  FakeVirtualMemory memory;
  ZoneRanges ranges;
  std::unique_ptr<WholeAce> ace = std::make_unique<WholeAce>(memory, &ranges);
};

TEST(AceClosedTest, NothingIsAccessibleBeforeItIsGranted) {
  Heap heap(kClosed);
  std::size_t granted_bytes = 0;
  for (int i = 0; i < 70; ++i) {
    const Ace::Grant span = heap.Span(i % 3 == 0 ? 40 : 4);
    granted_bytes += (i % 3 == 0 ? 40 : 4) * kUnitBytes - span.guard_bytes;
    const Ace::Grant slab = heap.Slab(i % 2 == 0 ? kPool : kLongPool);
    granted_bytes += (i % 2 == 0 ? 1 : 4) * kUnitBytes - slab.guard_bytes;
    EXPECT_EQ(slab.guard_bytes, heap.memory.PageBytes());
    ASSERT_EQ(heap.OpenBytes(/*fine=*/false), granted_bytes);
    heap.ace->CheckInvariants();
  }
  // An alignment that needs a longer run opens no more.
  const Ace::Grant aligned = heap.Span(4, 8 * kMiB);
  granted_bytes += 4 * kUnitBytes - aligned.guard_bytes;
  EXPECT_EQ(heap.OpenBytes(/*fine=*/false), granted_bytes);
}

// What opens a range leaves its guard closed: no call more, and no mapping.
TEST(AceClosedTest, TakesNoMoreCallsThanGuards) {
  Heap closed(kClosed);
  Heap open(kOpen, SmallPages(), 65'530, /*seed=*/2);
  std::vector<UnitIndex> slabs;
  std::vector<UnitIndex> spans;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      slabs.push_back(closed.Slab(kPool).first);
      ASSERT_EQ(open.Slab(kPool).first, slabs.back());
      spans.push_back(closed.Span(i % 10 == 0 ? 64 : 3).first);
      ASSERT_EQ(open.Span(i % 10 == 0 ? 64 : 3).first, spans.back());
    }
    ASSERT_EQ(closed.memory.calls(VmCall::kNone),
              open.memory.calls(VmCall::kNone));
    // What follows the last guard is one with it.
    ASSERT_LE(closed.memory.mappings(), open.memory.mappings());
    for (int i = 0; i < 100; ++i) {
      for (Heap* heap : {&closed, &open}) {
        heap->ace->ReleaseSlab(IsTiny(kPool), SlabRange(kPool),
                               slabs[static_cast<std::size_t>(i)]);
        heap->ace->ReleaseSpan(spans[static_cast<std::size_t>(i)],
                               i % 10 == 0 ? 64 : 3);
        if (round == 1 && i == 99) heap->ace->UnmapCaches();
      }
    }
    slabs.clear();
    spans.clear();
  }
  EXPECT_EQ(closed.Protects(), open.Protects());
}

// The fine zone has no guards: six calls at most.
TEST(AceClosedTest, TheFineZoneIsOpenedInSteps) {
  Heap heap(kClosed);
  for (std::uint32_t units = 1; units <= 8 * kUnitsPerSuperSlab; ++units) {
    ASSERT_NE(heap.Slab(kTiny).first, kNoUnit);
    const std::size_t open_units = heap.OpenBytes(/*fine=*/true) / kUnitBytes;
    ASSERT_GE(open_units, units);
    if (units <= 2 * kUnitsPerSuperSlab) {
      ASSERT_LE(open_units, std::max(units + 7, units + units / 2));
    }
  }
  EXPECT_EQ(heap.Protects(), 6U);
}

TEST(AceClosedTest, FramesThatAreMappedAgainAreClosed) {
  Heap heap(kClosed);
  const UnitIndex span = heap.Span(48).first;
  const UnitIndex behind = heap.Span(4).first;
  const UnitIndex tiny = heap.Slab(kTiny).first;
  ASSERT_EQ(behind, span + 48);
  const std::size_t behind_bytes = heap.OpenBytes(/*fine=*/false) -
                                   48 * kUnitBytes + heap.memory.PageBytes();
  // The first of its two frames goes: the other one's guard stays.
  heap.ace->ReleaseSpan(span, 48);
  heap.ace->ReleaseSlab(IsTiny(kTiny), SlabRange(kTiny), tiny);
  EXPECT_GE(heap.ace->UnmapCaches(), 2 * kSuperSlabBytes);
  heap.ace->CheckInvariants();
  const std::uint64_t protects = heap.Protects();
  // Another length gets nothing of it, and opens nothing of it.
  const Ace::Grant other = heap.Span(3);
  EXPECT_EQ(heap.Protects(), protects + 1);
  EXPECT_TRUE(other.first < span || other.first >= behind + 4);
  const Ace::Grant again = heap.Span(48);
  EXPECT_EQ(again.first, span);
  EXPECT_EQ(again.guard_bytes, heap.memory.PageBytes());
  EXPECT_EQ(heap.Protects(), protects + 2);
  EXPECT_EQ(heap.OpenBytes(/*fine=*/false),
            behind_bytes + 51 * kUnitBytes - 2 * heap.memory.PageBytes());
  EXPECT_EQ(heap.Slab(kTiny).first, tiny);
  heap.ace->CheckInvariants();
}

// Without guards opening would be a call more for each range.
TEST(AceClosedTest, WhereGuardsAreUsedUpFramesAreOpen) {
  Heap heap(kClosed, SmallPages(), /*max_mappings=*/80);
  for (int i = 0; i < 10; ++i) EXPECT_NE(heap.Slab(kPool).guard_bytes, 0U);
  for (int i = 0; i < 200; ++i) {
    const Ace::Grant grant = heap.Slab(kPool);
    ASSERT_NE(grant.first, kNoUnit);
    EXPECT_EQ(grant.guard_bytes, 0U);
  }
  // The rest of the frame in which the last guard is.
  EXPECT_LE(heap.Protects(), kUnitsPerSuperSlab);
  EXPECT_LE(heap.memory.mappings(), 40U);
}

TEST(AceClosedTest, HugePagesAreOpen) {
  HeapOptions options;
  options.huge_pages = static_cast<std::uint64_t>(HugePages::kOn);
  Heap heap(kClosed, options);
  heap.Slab(kPool);
  heap.Slab(kTiny);
  EXPECT_EQ(heap.memory.protected_bytes(), 0U);
  const Ace::Grant span = heap.Span(40);
  EXPECT_EQ(span.guard_bytes, heap.memory.PageBytes());
  EXPECT_EQ(heap.memory.protected_bytes(), heap.memory.PageBytes());
}

TEST(AceClosedTest, ARefusedOpeningIsARefusedGrant) {
  Heap heap(kClosed);
  for (const bool fine : {false, true}) {
    const SizeClass size_class = fine ? kTiny : kPool;
    heap.memory.RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kProtect);
    const Ace::Grant refused = heap.Slab(size_class);
    EXPECT_EQ(refused.first, kNoUnit);
    EXPECT_EQ(refused.refusal.reason, FailureReason::kMapFail);
    EXPECT_EQ(refused.refusal.call, VmCall::kProtect);
    EXPECT_EQ(refused.refusal.error_number, ENOMEM);
    EXPECT_GT(refused.refusal.bytes, 0U);
    heap.ace->CheckInvariants();
    const Ace::Grant grant = heap.Slab(size_class);
    ASSERT_NE(grant.first, kNoUnit);
    EXPECT_EQ(grant.guard_bytes, fine ? 0U : heap.memory.PageBytes());
  }
}

// A range whose frame is mapped again, too: it stays its class's.
TEST(AceClosedTest, ARefusedOpeningLosesNothing) {
  Heap heap(kClosed);
  const UnitIndex span = heap.Span(48).first;
  heap.ace->ReleaseSpan(span, 48);
  heap.ace->UnmapCaches();
  heap.memory.RefuseCall(1, ENOMEM, Refuse::kFromThenOn, VmCall::kProtect);
  EXPECT_EQ(heap.Span(48).first, kNoUnit);
  heap.ace->CheckInvariants();
  heap.memory.RefuseNothing();
  EXPECT_EQ(heap.Span(48).first, span);
}

// What has pages before it is granted is accessible.
// Nor where there is no room for a whole SuperSlab.
TEST(AceClosedTest, ARefusedOpeningOfTheLastUnitsLosesNothing) {
  Heap heap(kClosed);
  ASSERT_NE(heap.Span(1).first, kNoUnit);
  constexpr std::uint32_t kUnits = 2 * kUnitsPerSuperSlab;
  heap.memory.LimitBytes(heap.memory.mapped_bytes() +
                         (kUnits - 1) * kUnitBytes);
  heap.memory.RefuseCall(1, ENOMEM, Refuse::kFromThenOn, VmCall::kProtect);
  EXPECT_EQ(heap.ace->GrantSpan(kUnits, kUnitBytes).first, kNoUnit);
  heap.ace->CheckInvariants();
  heap.memory.RefuseNothing();
  EXPECT_NE(heap.Span(kUnits).first, kNoUnit);
}

TEST(AceClosedTest, WhatIsPopulatedIsWhatIsGranted) {
  HeapOptions options = SmallPages();
  options.prefault = 1;
  Heap heap(kClosed, options);
  const UnitIndex unit = heap.Slab(kPool).first;
  const Zone& zone = heap.ace->region().coarse();
  EXPECT_TRUE(heap.memory.WasPopulated(zone.UnitAddress(unit),
                                       kUnitBytes - heap.memory.PageBytes()));
  const UnitIndex last = FirstUnitOfFrame(zone.frame_count()) - 1;
  EXPECT_TRUE(heap.memory.IsProtected(zone.UnitAddress(last), kUnitBytes));
  heap.ace->CheckInvariants();
}

}  // namespace
}  // namespace hakmem
