// Ace: what unmapping free SuperSlabs takes of the kernel's mappings.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr Config kSeparate = {.name = "separate", .separate_classes = true};
// Each zone's share of kMaxMappings is 5 runs.
constexpr std::size_t kMaxMappings = 80;
constexpr std::size_t kMostRuns = 5;
constexpr int kHoles = 40;
constexpr std::uint32_t kLongFrames = 12;

class AceUnmapTest : public testing::TestWithParam<bool> {
 protected:
  AceUnmapTest() {
    memory_.SetNowMs(10'000);
    memory_.SetMaxMappings(kMaxMappings);
    ace_->Start(HeapOptions(), GetParam() ? kSeparate : kRelease);
  }
  ~AceUnmapTest() override { ace_->CheckInvariants(); }

  UnitIndex Frames(std::uint32_t frames) {
    return ace_->GrantSpan(frames * kUnitsPerSuperSlab, kUnitBytes).first;
  }
  void Release(UnitIndex first, std::uint32_t frames) {
    ace_->ReleaseSpan(first, frames * kUnitsPerSuperSlab);
  }
  std::size_t Runs() { return ace_->region().coarse().mapped_runs(); }

  // Holes of one SuperSlab each, and one long run, between frames in use.
  void MakeHoles() {
    std::vector<UnitIndex> holes;
    ASSERT_NE(Frames(1), kNoUnit);
    for (int i = 0; i < kHoles; ++i) {
      holes.push_back(Frames(1));
      ASSERT_NE(Frames(1), kNoUnit);
    }
    const UnitIndex run = Frames(kLongFrames);
    UnitIndex last = 0;
    do {
      last = Frames(1);
      ASSERT_NE(last, kNoUnit);
    } while (FrameOfUnit(last) + 1 != ace_->region().coarse().frame_count());
    for (const UnitIndex hole : holes) Release(hole, 1);
    Release(run, kLongFrames);
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
};

INSTANTIATE_TEST_SUITE_P(Variants, AceUnmapTest, testing::Bool());

TEST_P(AceUnmapTest, ManyHolesTakeAShareOfTheMappings) {
  MakeHoles();
  const std::size_t before = memory_.mappings();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(ace_->UnmapCaches() != 0, round == 0);
    EXPECT_LE(memory_.mappings(), before + kMostRuns);
    EXPECT_LE(Runs(), kMostRuns);
    ace_->CheckInvariants();
  }
}

// What is mapped again leaves its part of the share to others.
TEST_P(AceUnmapTest, TheShareIsUsedAgain) {
  MakeHoles();
  for (int round = 0; round < 3; ++round) {
    EXPECT_GE(ace_->UnmapCaches(), (kMostRuns - 1) * kSuperSlabBytes);
    std::vector<UnitIndex> spans;
    const UnitIndex run = Frames(kLongFrames);
    while (Runs() != 1) {
      spans.push_back(Frames(1));
      ASSERT_NE(spans.back(), kNoUnit);
      ace_->CheckInvariants();
    }
    Release(run, kLongFrames);
    for (const UnitIndex span : spans) Release(span, 1);
  }
}

TEST_P(AceUnmapTest, NothingIsSplitWhereMappingsAreShort) {
  MakeHoles();
  const std::size_t before = memory_.mappings();
  EXPECT_EQ(ace_->UnmapCaches(/*mappings_short=*/true), 0U);
  EXPECT_EQ(memory_.mappings(), before);
  EXPECT_EQ(Runs(), 1U);
}

// At a zone's end nothing has to be split, at no time, and nothing is refused.
TEST_P(AceUnmapTest, AZonesEndGoesWhereMappingsAreShort) {
  if (GetParam()) GTEST_SKIP() << "frames go one by one";
  ASSERT_NE(Frames(1), kNoUnit);
  Release(Frames(kLongFrames), kLongFrames);
  const std::size_t free_frames = ace_->region().coarse().frame_count() - 1;
  ASSERT_GE(free_frames, kLongFrames);
  memory_.LimitMappings(memory_.mappings());
  EXPECT_EQ(ace_->UnmapCaches(/*mappings_short=*/true),
            free_frames * kSuperSlabBytes);
  EXPECT_EQ(memory_.refused(), 0U);
}

// A guard page is a mapping, and splits another.
TEST(AceUnmapGuardsTest, FramesWithGuardsGoWhereMappingsAreShort) {
  constexpr Config kGuarded = {
      .name = "guarded", .separate_classes = true, .guard_pages = true};
  FakeVirtualMemory memory;
  ZoneRanges ranges;
  const auto ace = std::make_unique<WholeAce>(memory, &ranges);
  ace->Start(HeapOptions(), kGuarded);
  UnitIndex spans[5];
  for (UnitIndex& span : spans) {
    span = ace->GrantSpan(kUnitsPerSuperSlab, kUnitBytes).first;
    ASSERT_NE(span, kNoUnit);
  }
  for (const int hole : {1, 3}) {
    ace->ReleaseSpan(spans[hole], kUnitsPerSuperSlab);
  }
  const std::size_t before = memory.mappings();
  EXPECT_EQ(ace->UnmapCaches(/*mappings_short=*/true), 2 * kSuperSlabBytes);
  EXPECT_LT(memory.mappings(), before);
  ace->CheckInvariants();
}

}  // namespace
}  // namespace hakmem
