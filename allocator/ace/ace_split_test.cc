// Ace: SuperSlabs of huge pages of which a part was given back.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kHalfUnits = kUnitsPerSuperSlab / 2;

class AceSplitTest : public testing::Test {
 protected:
  AceSplitTest() {
    HeapOptions options;
    options.huge_pages = static_cast<std::uint64_t>(HugePages::kOn);
    ace_->Start(options, kRelease);
  }
  ~AceSplitTest() override { ace_->CheckInvariants(); }

  UnitIndex Span(std::uint32_t units) {
    const UnitIndex span = ace_->GrantSpan(units, kUnitBytes).first;
    EXPECT_NE(span, kNoUnit);
    return span;
  }
  // Two of half a SuperSlab each, for each of so many SuperSlabs.
  std::vector<UnitIndex> Halves(std::size_t frames) {
    std::vector<UnitIndex> spans(2 * frames);
    for (UnitIndex& span : spans) span = Span(kHalfUnits);
    for (std::size_t i = 0; i < spans.size(); i += 2) {
      EXPECT_EQ(FrameOfUnit(spans[i]), FrameOfUnit(spans[i + 1]));
    }
    return spans;
  }
  bool IsHuge(UnitIndex unit) {
    return memory_.IsHuge(
        ace_->region().coarse().FrameAddress(FrameOfUnit(unit)),
        kSuperSlabBytes);
  }

  // As of a slab that starts there.
  void NoteHoles(UnitIndex unit, Holes holes) {
    ace_->NoteHoles(ace_->region().coarse(), unit, holes);
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<Ace> ace_ = std::make_unique<Ace>(memory_);
};

// Or the kernel would make it whole, and what was given back take memory again.
TEST_F(AceSplitTest, IsNoHugePageAgainWhileAPartIsGivenBack) {
  const std::vector<UnitIndex> spans = Halves(1);
  EXPECT_TRUE(IsHuge(spans[0]));
  ace_->ReleaseSpan(spans[1], kHalfUnits);
  EXPECT_TRUE(IsHuge(spans[0]));
  ace_->PurgeAll();
  EXPECT_FALSE(IsHuge(spans[0]));
  ace_->CheckInvariants();
  const UnitIndex quarter = Span(kHalfUnits / 2);
  EXPECT_EQ(FrameOfUnit(quarter), FrameOfUnit(spans[0]));
  EXPECT_FALSE(IsHuge(spans[0]));
  // The last quarter makes it whole.
  EXPECT_TRUE(ace_->ExtendSpan(quarter, kHalfUnits / 2, kHalfUnits));
  EXPECT_TRUE(IsHuge(spans[0]));
}

TEST_F(AceSplitTest, IsOneWhenAllOfItWasGivenBack) {
  const std::vector<UnitIndex> spans = Halves(1);
  ace_->ReleaseSpan(spans[1], kHalfUnits);
  ace_->PurgeAll();
  ace_->ReleaseSpan(spans[0], kHalfUnits);
  EXPECT_FALSE(IsHuge(spans[0]));
  ace_->PurgeAll();
  EXPECT_TRUE(IsHuge(spans[0]));
}

TEST_F(AceSplitTest, IsOneWhenItIsGivenBackAtOnceAfterHoles) {
  const std::vector<UnitIndex> spans = Halves(2);
  NoteHoles(spans[0], Holes::kFirst);
  EXPECT_FALSE(IsHuge(spans[0]));
  EXPECT_TRUE(IsHuge(spans[2]));
  NoteHoles(spans[0], Holes::kReleased);
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, kHalfUnits);
  ace_->PurgeAll();
  EXPECT_TRUE(IsHuge(spans[0]));
  EXPECT_TRUE(IsHuge(spans[2]));
}

// What else of it is granted again leaves the holes as they are.
TEST_F(AceSplitTest, IsNoneWhileItsSlabsHaveHoles) {
  std::vector<UnitIndex> spans = Halves(1);
  NoteHoles(spans[0], Holes::kFirst);
  NoteHoles(spans[0], Holes::kMore);
  NoteHoles(spans[1], Holes::kFirst);
  NoteHoles(spans[1], Holes::kTaken);
  for (int i = 0; i < 3; ++i) {
    ace_->ReleaseSpan(spans[1], kHalfUnits);
    spans[1] = Span(kHalfUnits);
    EXPECT_EQ(FrameOfUnit(spans[0]), FrameOfUnit(spans[1]));
    EXPECT_FALSE(IsHuge(spans[0]));
  }
  ace_->CheckInvariants();
  NoteHoles(spans[0], Holes::kTaken);
  EXPECT_TRUE(IsHuge(spans[0]));
}

TEST_F(AceSplitTest, IsOneWhenItIsMappedAgain) {
  const std::vector<UnitIndex> spans = Halves(4);
  for (std::size_t i = 1; i < spans.size(); i += 2) {
    ace_->ReleaseSpan(spans[i], kHalfUnits);
  }
  ace_->PurgeAll();
  for (std::size_t i = 0; i < spans.size(); i += 2) {
    EXPECT_FALSE(IsHuge(spans[i]));
    ace_->ReleaseSpan(spans[i], kHalfUnits);
  }
  EXPECT_GE(ace_->UnmapCaches(), 4 * kSuperSlabBytes);
  ace_->CheckInvariants();
  const std::vector<UnitIndex> again = Halves(4);
  for (const UnitIndex span : again) EXPECT_TRUE(IsHuge(span));
  ace_->ReleaseSpan(again[0], kHalfUnits);
  ace_->PurgeAll();
  EXPECT_FALSE(IsHuge(again[0]));
}

// Ranges that are their class's for good are granted again, too.
TEST(AceSplitRangesTest, IsOneWhenItsRangesAreGrantedAgain) {
  FakeVirtualMemory memory;
  const auto ranges = std::make_unique<ZoneRanges>();
  const auto ace = std::make_unique<Ace>(memory, ranges.get());
  HeapOptions options;
  options.huge_pages = static_cast<std::uint64_t>(HugePages::kOn);
  ace->Start(options, kHardened);
  const SizeClass size_class = 0;
  std::vector<UnitIndex> slabs(kUnitsPerSuperSlab);
  for (UnitIndex& slab : slabs)
    slab = ace->GrantSlab(IsTiny(size_class), SlabRange(size_class)).first;
  const Address frame = ace->region().fine().FrameAddress(0);
  const auto is_huge = [&] { return memory.IsHuge(frame, kSuperSlabBytes); };
  EXPECT_TRUE(is_huge());
  for (std::size_t i = 0; i < kHalfUnits; ++i) {
    ace->ReleaseSlab(IsTiny(size_class), SlabRange(size_class), slabs[i]);
  }
  ace->PurgeAll();
  for (std::size_t i = 0; i < kHalfUnits; ++i) {
    EXPECT_FALSE(is_huge());
    EXPECT_EQ(
        FrameOfUnit(
            ace->GrantSlab(IsTiny(size_class), SlabRange(size_class)).first),
        0U);
  }
  EXPECT_TRUE(is_huge());
  ace->CheckInvariants();
}

// Each takes two mappings of those that a process may have.
TEST_F(AceSplitTest, AreNoMoreThanTheKernelsMappingsBear) {
  constexpr std::size_t kFrames = 600;
  const std::vector<UnitIndex> spans = Halves(kFrames);
  for (std::size_t i = 1; i < spans.size(); i += 2) {
    ace_->ReleaseSpan(spans[i], kHalfUnits);
  }
  ace_->PurgeAll();
  std::size_t split = 0;
  for (std::size_t i = 0; i < spans.size(); i += 2) {
    split += IsHuge(spans[i]) ? 0 : 1;
  }
  EXPECT_EQ(split, 512U);
}

}  // namespace
}  // namespace hakmem
