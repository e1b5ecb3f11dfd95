// Ace: SuperSlabs of huge pages: which, and those of which a part went back.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
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
  void NoteHoles(UnitIndex unit) {
    ace_->NoteHoles(ace_->region().coarse(), FrameOfUnit(unit));
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_ = std::make_unique<WholeAce>(memory_);
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
  EXPECT_TRUE(ace_->ExtendSpan(quarter, kHalfUnits / 2, kHalfUnits));
  EXPECT_FALSE(IsHuge(spans[0]));
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
  NoteHoles(spans[0]);
  EXPECT_FALSE(IsHuge(spans[0]));
  EXPECT_TRUE(IsHuge(spans[2]));
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, kHalfUnits);
  ace_->PurgeAll();
  EXPECT_TRUE(IsHuge(spans[0]));
  EXPECT_TRUE(IsHuge(spans[2]));
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

// Which frames get huge pages. What a step maps beyond a span is free when the
// zone grows for a longer one, so the last frame that is taken counts.
TEST(AceLastFrameTest, AutoLooksAtTheLastFrameThatIsTaken) {
  FakeVirtualMemory memory;
  WholeAce ace(memory);
  HeapOptions options;
  options.huge_pages = static_cast<std::uint64_t>(HugePages::kAuto);
  ace.Start(options, kRelease);
  const Zone& zone = ace.region().coarse();
  const auto grant = [&](std::size_t bytes) {
    return ace.GrantSpan(bytes / kUnitBytes, kUnitBytes).first;
  };
  ASSERT_NE(grant(64 * kMiB), kNoUnit);
  std::memset(reinterpret_cast<void*>(zone.UnitAddress(grant(kSuperSlabBytes))),
              1, kSuperSlabBytes);
  const FrameIndex before = zone.frame_count();
  ASSERT_NE(grant(8 * kMiB), kNoUnit);
  EXPECT_TRUE(memory.IsHuge(zone.FrameAddress(before),
                            (zone.frame_count() - before) * kSuperSlabBytes));
}

}  // namespace
}  // namespace hakmem
