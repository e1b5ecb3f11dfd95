// Ace: HAKMEM_HUGE_PAGES and HAKMEM_PREFAULT.

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "allocator/superslab/block_header.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Where HugePages::kAuto begins, and well beyond.
constexpr std::size_t kLeastBytes = 2 * kMiB;
constexpr std::size_t kAutoBytes = 2 * kLeastBytes;
constexpr std::size_t kHeapBytes = 4 * kAutoBytes;

class AcePagesTest : public testing::Test {
 protected:
  ~AcePagesTest() override { ace_->CheckInvariants(); }

  void Start(HugePages huge_pages, bool prefault = false,
             const Config& config = kRelease, std::uint64_t decay_ms = 500) {
    HeapOptions options;
    options.decay_ms = decay_ms;
    options.huge_pages = static_cast<std::uint64_t>(huge_pages);
    options.prefault = prefault ? 1 : 0;
    ace_->Start(options, config);
  }
  Zone& coarse() { return ace_->region().coarse(); }
  std::uint64_t CachedBytes() { return ace_->Snapshot().cached_bytes; }
  UnitIndex Span(std::size_t bytes) {
    return ace_
        ->GrantSpan(static_cast<std::uint32_t>(bytes / kUnitBytes), kUnitBytes)
        .first;
  }
  // As a program that uses it.
  void Touch(UnitIndex unit, std::size_t bytes, const Zone& zone) {
    ASSERT_NE(unit, kNoUnit);
    FillContent(zone.UnitAddress(unit), bytes, 1);
  }
  void Touch(UnitIndex unit, std::size_t bytes) {
    Touch(unit, bytes, coarse());
  }
  // Spans of 1 MiB.
  std::vector<UnitIndex> FillWithSpans(std::size_t bytes) {
    std::vector<UnitIndex> spans;
    for (std::size_t done = 0; done < bytes; done += kMiB) {
      spans.push_back(Span(kMiB));
      Touch(spans.back(), kMiB);
    }
    return spans;
  }
  // Spans that were taken two intervals ago.
  std::vector<UnitIndex> HoldForLong(std::size_t count, std::uint32_t units) {
    std::vector<UnitIndex> spans(count);
    for (UnitIndex& span : spans) span = Span(units * kUnitBytes);
    for (int i = 0; i < 2; ++i) {
      memory_.AdvanceMs(250);
      ace_->TrimIfDue();
    }
    return spans;
  }
  bool IsAnyHuge(FrameIndex before) {
    for (FrameIndex frame = 0; frame < before; ++frame) {
      if (IsHuge(frame, 1)) return true;
    }
    return false;
  }
  bool IsHuge(FrameIndex first, FrameIndex frames) {
    return memory_.IsHuge(coarse().FrameAddress(first),
                          frames * kSuperSlabBytes);
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_ = std::make_unique<WholeAce>(memory_);
};

TEST_F(AcePagesTest, OffAsksForNothing) {
  Start(HugePages::kOff);
  ASSERT_NE(Span(256 * kMiB), kNoUnit);
  ASSERT_NE(Span(256 * kMiB), kNoUnit);
  ASSERT_NE(Span(2 * kMiB), kNoUnit);
  EXPECT_FALSE(IsAnyHuge(coarse().frame_count()));
}

TEST_F(AcePagesTest, OnAsksForEveryFrameAndEveryHugeBlock) {
  Start(HugePages::kOn);
  for (int i = 0; i < 50; ++i) {
    ASSERT_NE(ace_->GrantSlab(true, {16, 16}).first, kNoUnit);
    ASSERT_NE(Span(3 * kMiB), kNoUnit);
  }
  const Zone& fine = ace_->region().fine();
  EXPECT_TRUE(memory_.IsHuge(fine.FrameAddress(0),
                             fine.frame_count() * kSuperSlabBytes));
  EXPECT_TRUE(IsHuge(0, coarse().frame_count()));
  const Address huge = ace_->GrantHuge(4 * kMiB, kSuperSlabBytes).address;
  EXPECT_TRUE(memory_.IsHuge(huge, 4 * kMiB));
  const Address grown = ResizeLive(*ace_, huge, 40 * kMiB).address;
  EXPECT_TRUE(memory_.IsHuge(grown, 40 * kMiB));
}

// What is given back at once is not looked for; here, nobody could look at all
// SuperSlabs.
TEST_F(AcePagesTest, WithoutDecayAReleaseLooksAtItsOwnSuperSlab) {
  Start(HugePages::kOn, /*prefault=*/false, kRelease, /*decay_ms=*/0);
  for (int i = 0; i < 3; ++i) ASSERT_NE(Span(256 * kMiB), kNoUnit);
  const FrameIndex frames = coarse().frame_count();
  constexpr std::size_t kBytes = 2 * kUnitBytes;
  const UnitIndex span = Span(kBytes);
  ASSERT_GE(FrameOfUnit(span), frames);
  const Address page_bytes = memory_.PageBytes();
  const Address page = RoundUp(
      reinterpret_cast<Address>(&coarse().super_slab(frames / 2)), page_bytes);
  ASSERT_LT(page + page_bytes,
            reinterpret_cast<Address>(&coarse().super_slab(frames)));
  auto* const begin = reinterpret_cast<void*>(page);
  ASSERT_EQ(mprotect(begin, page_bytes, PROT_NONE), 0);
  ace_->ReleaseSpan(span, kBytes / kUnitBytes);
  ASSERT_EQ(mprotect(begin, page_bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(memory_.IsPurged(coarse().UnitAddress(span), kBytes));
  EXPECT_EQ(CachedBytes(), 0U);
}

TEST_F(AcePagesTest, AutoBeginsInALargeHeap) {
  Start(HugePages::kAuto);
  FillWithSpans(kLeastBytes);
  const FrameIndex before = coarse().frame_count();
  const std::uint64_t looks = memory_.resident_looks();
  memory_.LimitBytes(memory_.mapped_bytes());
  EXPECT_EQ(Span(64 * kMiB), kNoUnit);
  EXPECT_EQ(memory_.resident_looks(), looks);  // what is refused asks nothing
  memory_.LimitBytes(SIZE_MAX);
  ASSERT_NE(Span(64 * kMiB), kNoUnit);
  EXPECT_FALSE(IsAnyHuge(before + 1));
  EXPECT_TRUE(IsHuge(before + 1, coarse().frame_count() - before - 1));
}

TEST_F(AcePagesTest, AutoLeavesASmallHeapAlone) {
  Start(HugePages::kAuto);
  FillWithSpans(kLeastBytes - kMiB);
  ASSERT_NE(Span(kAutoBytes), kNoUnit);
  EXPECT_FALSE(IsAnyHuge(coarse().frame_count()));
}

// Between five eighths and three quarters of the last frame are in memory.
TEST_F(AcePagesTest, AutoAsksForFullerFramesInALargerHeap) {
  constexpr std::size_t kSmallHeapBytes = 16 * kMiB;
  for (const std::size_t heap_bytes : {kLeastBytes, kSmallHeapBytes}) {
    FakeVirtualMemory memory;
    WholeAce ace(memory);
    HeapOptions options;
    options.huge_pages = static_cast<std::uint64_t>(HugePages::kAuto);
    ace.Start(options, kRelease);
    const Zone& zone = ace.region().coarse();
    const auto grant = [&](std::size_t touched) {
      const auto span = ace.GrantSpan(kUnitsPerSuperSlab, kUnitBytes);
      Touch(span.first, touched, zone);
    };
    // Frames before the last are too empty.
    for (std::size_t done = kSuperSlabBytes; done < heap_bytes;) {
      grant(kSuperSlabBytes / 2);
      done += kSuperSlabBytes;
    }
    grant(kSuperSlabBytes / 16 * 11);
    grant(1);
    EXPECT_EQ(memory.IsHuge(zone.FrameAddress(zone.frame_count() - 1),
                            kSuperSlabBytes),
              heap_bytes < kSmallHeapBytes);
  }
}

// The other zone's memory counts, but its use does not.
TEST_F(AcePagesTest, AutoLooksAtEachZone) {
  Start(HugePages::kAuto);
  FillWithSpans(kAutoBytes);
  const Zone& fine = ace_->region().fine();
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(ace_->GrantSlab(true, {16, 16}).first, kNoUnit);
  }
  EXPECT_FALSE(memory_.IsHuge(fine.FrameAddress(0), kSuperSlabBytes));
  EXPECT_FALSE(memory_.IsHuge(fine.FrameAddress(fine.frame_count() - 1),
                              kSuperSlabBytes));
}

TEST_F(AcePagesTest, AutoLeavesAHeapAloneThatIsLargelyFree) {
  Start(HugePages::kAuto);
  std::vector<UnitIndex> spans = FillWithSpans(kLeastBytes);
  // Half of it in holes that are too short for the next.
  std::size_t freed = 0;
  for (std::size_t i = 0; i < spans.size(); i += 2, ++freed) {
    ace_->ReleaseSpan(spans[i], kMiB / kUnitBytes);
  }
  for (int i = 0; i < 2; ++i) Touch(Span(kLeastBytes), kLeastBytes);
  EXPECT_FALSE(IsHuge(coarse().frame_count() - 1, 1));
  for (; freed != 0; --freed) ASSERT_NE(Span(kMiB), kNoUnit);
  ASSERT_NE(Span(2 * kAutoBytes), kNoUnit);
  EXPECT_TRUE(IsHuge(coarse().frame_count() - 2, 1));
}

TEST_F(AcePagesTest, AutoLeavesAHeapAloneThatIsHardlyTouched) {
  Start(HugePages::kAuto);
  UnitIndex last = kNoUnit;
  for (std::size_t bytes = 0; bytes < 2 * kHeapBytes; bytes += kMiB) {
    last = Span(kMiB);
    Touch(last, kMiB / 2);
  }
  EXPECT_FALSE(IsAnyHuge(coarse().frame_count()));
  for (UnitIndex unit = 0; unit <= last; unit += kMiB / kUnitBytes) {
    Touch(unit, kMiB);
  }
  ASSERT_NE(Span(kSuperSlabBytes), kNoUnit);
  EXPECT_TRUE(IsHuge(coarse().frame_count() - 2, 1));
}

// The last frame has room that the next span does not fit when the zone grows.
TEST_F(AcePagesTest, AutoGoesOnWhereSpansAreLongerThanAFrame) {
  Start(HugePages::kAuto);
  FillWithSpans(kLeastBytes);
  const FrameIndex before = coarse().frame_count();
  for (int i = 0; i < 60; ++i) Touch(Span(5 * kMiB), 5 * kMiB);
  FrameIndex huge = 0;
  for (FrameIndex i = before; i < coarse().frame_count(); ++i) {
    huge += IsHuge(i, 1) ? 1 : 0;
  }
  EXPECT_GE(huge, (coarse().frame_count() - before) / 2);
}

// Spans, and slabs of blocks longer than a page, that are filled, hardly
// touched, and filled again.
TEST_F(AcePagesTest, AutoEndsWhereLongBlocksAreHardlyTouched) {
  constexpr SizeClass kClass = ClassOf(64 * kKiB);
  constexpr std::size_t kSlabBytes =
      kClassLayouts[kClass].slab_units * kUnitBytes;
  for (const bool slabs : {false, true}) {
    ace_ = std::make_unique<WholeAce>(memory_);
    Start(HugePages::kAuto);
    const auto fill = [&](std::size_t bytes, std::size_t share) {
      const std::size_t step = slabs ? kSlabBytes : kMiB;
      const FrameIndex before = coarse().frame_count();
      for (std::size_t done = 0; done < bytes; done += step) {
        const UnitIndex unit =
            slabs ? ace_->GrantSlab(IsTiny(kClass), SlabRange(kClass)).first
                  : Span(step);
        Touch(unit, step / share);
        if (!slabs) continue;
        const HeaderByte live = MakeHeader(BlockState::kLive, kClass + 1U);
        for (UnitIndex i = unit; i < unit + step / kUnitBytes; ++i) {
          coarse().unit_record(i).store(MakeUnitRecord(1, live));
          coarse().header(coarse().UnitAddress(i)).store(live);
        }
      }
      FrameIndex huge = 0;
      for (FrameIndex i = before; i < coarse().frame_count(); ++i) {
        huge += IsHuge(i, 1) ? 1 : 0;
      }
      return huge;
    };
    const FrameIndex frames = 5 * kAutoBytes / kSuperSlabBytes;
    EXPECT_GE(fill(5 * kAutoBytes, 1), frames / 2);
    // An eighth of them, or 16 MiB, has huge pages for nothing, and what the
    // zone grows by until a frame tells.
    const FrameIndex most = std::max(coarse().frame_count() / 4,
                                     FrameIndex{32 * kMiB / kSuperSlabBytes});
    EXPECT_LE(fill(5 * kAutoBytes, 4), most);
    EXPECT_GE(fill(5 * kAutoBytes, 1), frames / 2);
    ace_->CheckInvariants();
  }
}

// Of blocks of a page or less the headers tell, and no frame has small pages.
TEST_F(AcePagesTest, AutoLooksAtHeadersOfShortBlocks) {
  for (const std::size_t block_bytes : {4 * kKiB, 8 * kKiB}) {
    ace_ = std::make_unique<WholeAce>(memory_);
    Start(HugePages::kAuto);
    const SizeClass size_class = ClassOf(block_bytes);
    const HeaderByte live = MakeHeader(BlockState::kLive, size_class + 1U);
    for (std::size_t done = 0; done < 128 * kMiB; done += kUnitBytes) {
      const UnitIndex unit =
          ace_->GrantSlab(IsTiny(size_class), SlabRange(size_class)).first;
      Touch(unit, kUnitBytes);
      coarse().unit_record(unit).store(MakeUnitRecord(1, live));
      const Address end = coarse().UnitAddress(unit) + kUnitBytes;
      coarse().header(end - block_bytes).store(live);
    }
    FrameIndex small = 0;
    for (FrameIndex i = 4; i < coarse().frame_count(); ++i) {
      small += IsHuge(i, 1) ? 0 : 1;
    }
    EXPECT_EQ(small == 0, block_bytes == 4 * kKiB);
    ace_->CheckInvariants();
  }
}

// Slabs of 64-byte blocks, of whose first `blocks` there are headers: of many
// threads that have few, and of one that has many. The former come later.
class AcePagesOfSlabsTest : public AcePagesTest,
                            public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Hidden, AcePagesOfSlabsTest, testing::Bool());

// Also where nobody tells which pages are in memory.
TEST_P(AcePagesOfSlabsTest, AutoLeavesThoseAloneOfWhichLittleIsUsed) {
  if (GetParam()) memory_.HideResident();
  Start(HugePages::kAuto);
  const Zone& fine = ace_->region().fine();
  constexpr SizeClass kClass = TinyClassOf(64);
  constexpr std::size_t kBlocks = kUnitBytes / 64;
  const auto grant = [&](std::size_t blocks, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kUnitBytes) {
      const UnitIndex unit =
          ace_->GrantSlab(IsTiny(kClass), SlabRange(kClass)).first;
      Touch(unit, blocks * 64, fine);
      const HeaderByte live = MakeHeader(BlockState::kLive, kClass + 1U);
      fine.unit_record(unit).store(MakeUnitRecord(1, live));
      for (std::size_t i = 0; i < blocks; ++i) {
        fine.header(fine.UnitAddress(unit) + i * 64).store(live);
      }
    }
  };
  const auto ends_huge = [&] {
    return memory_.IsHuge(fine.FrameAddress(fine.frame_count() - 1),
                          kSuperSlabBytes);
  };
  grant(kBlocks, 3 * kAutoBytes);
  EXPECT_TRUE(ends_huge());
  const FrameIndex dense = fine.frame_count();
  grant(4, 2 * kAutoBytes);
  EXPECT_FALSE(ends_huge());
  // At most what a zone grows by at once has huge pages for nothing.
  EXPECT_FALSE(
      memory_.IsHuge(fine.FrameAddress(dense + dense / 2), kSuperSlabBytes));
  // What was mapped before keeps them.
  EXPECT_TRUE(memory_.IsHuge(fine.FrameAddress(dense - 1), kSuperSlabBytes));
  grant(kBlocks, 3 * kAutoBytes);
  EXPECT_TRUE(ends_huge());
}

// What was unmapped under pressure has no pages to look at.
TEST_F(AcePagesTest, AutoLeavesAHeapAloneWhoseEndIsUnmapped) {
  Start(HugePages::kAuto);
  ASSERT_NE(Span(kAutoBytes), kNoUnit);
  const UnitIndex last = Span(kSuperSlabBytes);
  const FrameIndex before = coarse().frame_count();
  ace_->ReleaseSpan(last, kUnitsPerSuperSlab);
  EXPECT_EQ(ace_->UnmapCaches(), kSuperSlabBytes);
  ASSERT_NE(Span(2 * kSuperSlabBytes), kNoUnit);
  EXPECT_FALSE(IsHuge(before, coarse().frame_count() - before));
}

TEST_F(AcePagesTest, AutoLeavesAHeapAloneThatGivesBackAtOnce) {
  Start(HugePages::kAuto, /*prefault=*/false, kRelease, /*decay_ms=*/0);
  FillWithSpans(2 * kAutoBytes);
  EXPECT_FALSE(IsAnyHuge(coarse().frame_count()));
}

// What is idle, in slices.
TEST_F(AcePagesTest, PartsOfHugePagesGoBackToo) {
  constexpr std::size_t kSpans = 80;
  for (const bool all : {false, true}) {
    ace_ = std::make_unique<WholeAce>(memory_);
    Start(HugePages::kOn);
    const std::vector<UnitIndex> spans = FillWithSpans(kSpans * kMiB);
    for (std::size_t i = 0; i < kSpans; i += 4) {
      ace_->ReleaseSpan(spans[i], kMiB / kUnitBytes);
    }
    const std::uint64_t calls = memory_.calls(VmCall::kPurge);
    if (all) {
      EXPECT_EQ(ace_->PurgeAll(), kSpans / 4 * kMiB);
    } else {
      memory_.AdvanceMs(1000);
      EXPECT_TRUE(ace_->TrimIfDue());
    }
    EXPECT_GE(memory_.calls(VmCall::kPurge), calls + kSpans / 4);
    for (std::size_t i = 0; i < kSpans; i += 4) {
      EXPECT_TRUE(memory_.IsPurged(coarse().UnitAddress(spans[i]), kMiB));
    }
    ace_->CheckInvariants();
  }
}

// Moving pages takes their mapping's properties along.
TEST_F(AcePagesTest, MovesOfPagesKeepTheWish) {
  Start(HugePages::kOn);
  const UnitIndex from = Span(8 * kMiB);
  const UnitIndex to = Span(16 * kMiB);
  ASSERT_TRUE(
      ace_->MoveSpanTo(from, ace_->region().coarse().UnitAddress(to), 8 * kMiB)
          .ok());
  EXPECT_TRUE(memory_.IsHuge(coarse().UnitAddress(from), 8 * kMiB));
  EXPECT_TRUE(memory_.IsHuge(coarse().UnitAddress(to), 16 * kMiB));
}

TEST_F(AcePagesTest, FramesMappedAgainAreAskedForAgain) {
  Start(HugePages::kOn);
  const UnitIndex span = Span(8 * kMiB);
  ace_->ReleaseSpan(span, 8 * kMiB / kUnitBytes);
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                     VmCall::kMap);
  EXPECT_EQ(Span(64 * kMiB), kNoUnit);
  EXPECT_EQ(ace_->UnmapCaches(), 8 * kMiB);
  EXPECT_EQ(ace_->mapped_bytes(), 0U);
  memory_.RefuseNothing();
  const UnitIndex again = Span(2 * kMiB);
  ASSERT_NE(again, kNoUnit);
  EXPECT_TRUE(memory_.IsHuge(coarse().UnitAddress(again), 2 * kMiB));
}

TEST_F(AcePagesTest, OffPopulatesNothing) {
  Start(HugePages::kOff);
  const UnitIndex unit = ace_->GrantSlab(true, {1, 1}).first;
  EXPECT_FALSE(memory_.WasPopulated(ace_->region().fine().UnitAddress(unit),
                                    memory_.PageBytes()));
}

TEST_F(AcePagesTest, PopulatesSlabsThatHaveNoPagesYetAndNoMore) {
  Start(HugePages::kOff, /*prefault=*/true);
  const UnitIndex unit = ace_->GrantSlab(false, {16, 16}).first;
  const Address begin = coarse().UnitAddress(unit);
  EXPECT_TRUE(memory_.WasPopulated(begin, 16 * kUnitBytes));
  EXPECT_FALSE(memory_.WasPopulated(begin + 16 * kUnitBytes, kUnitBytes));
  const UnitIndex span = Span(4 * kMiB);
  EXPECT_FALSE(
      memory_.WasPopulated(coarse().UnitAddress(span), memory_.PageBytes()));
}

// A slab whose memory is still there has nothing to be populated.
TEST_F(AcePagesTest, LeavesUsedMemoryAsItIs) {
  Start(HugePages::kOff, /*prefault=*/true);
  const UnitIndex unit = ace_->GrantSlab(false, {16, 16}).first;
  const Address begin = coarse().UnitAddress(unit);
  FillContent(begin, 16 * kUnitBytes, 5);
  ace_->ReleaseSlab(false, {16}, unit);
  ASSERT_EQ(ace_->GrantSlab(false, {16, 16}).first, unit);
  EXPECT_PRED3(HasContent, begin, 16 * kUnitBytes, 5);
}

TEST_F(AcePagesTest, WhatWasTakenBeforeALongPauseWasHeldForLong) {
  Start(HugePages::kOff);
  constexpr std::uint32_t kUnits = 16;
  std::vector<UnitIndex> spans(200);
  for (UnitIndex& span : spans) span = Span(kUnits * kUnitBytes);
  memory_.AdvanceMs(2000);
  EXPECT_TRUE(ace_->TrimIfDue());
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, kUnits);
  EXPECT_LE(CachedBytes(), 5 * kMiB + 200 * kMiB / 16);
}

// Of each frame of huge pages three quarters are released, in three rounds.
TEST_F(AcePagesTest, AHeapThatShrankGivesPartsOfHugePagesBack) {
  Start(HugePages::kOn);
  constexpr std::uint32_t kUnits = kUnitsPerSuperSlab / 4;
  const std::vector<UnitIndex> spans = HoldForLong(400, kUnits);
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t i = round; i < spans.size(); i += 4) {
      ace_->ReleaseSpan(spans[i], kUnits);
    }
    ace_->CheckInvariants();
  }
  EXPECT_LE(CachedBytes(), 5 * kMiB + 200 * kMiB / 16);
}

// A quarter of each frame of huge pages is released, and stays for their sake,
// while other spans come and go.
TEST_F(AcePagesTest, PartsOfHugePagesDriveNothingElseOut) {
  Start(HugePages::kOn);
  constexpr std::uint32_t kUnits = kUnitsPerSuperSlab / 4;
  const std::vector<UnitIndex> spans = HoldForLong(400, kUnits);
  for (std::size_t i = 0; i < spans.size(); i += 4) {
    ace_->ReleaseSpan(spans[i], kUnits);
  }
  const std::uint64_t calls = memory_.calls(VmCall::kPurge);
  for (int i = 0; i < 4; ++i) {
    memory_.AdvanceMs(250);
    // Longer than the parts, so that it lies elsewhere.
    ace_->ReleaseSpan(Span(3 * kUnits * kUnitBytes), 3 * kUnits);
    ASSERT_TRUE(ace_->TrimIfDue());
  }
  EXPECT_EQ(memory_.calls(VmCall::kPurge), calls);
  EXPECT_EQ(CachedBytes(), (100 + 3) * kUnits * kUnitBytes);
}

}  // namespace
}  // namespace hakmem
