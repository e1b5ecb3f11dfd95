// Ace with separate classes against a model: which class each unit has ever
// been of, and what live ranges hold.

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <random>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/test_factor.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr Config kSeparate = {
    .name = "separate", .separate_classes = true, .guard_pages = true};
constexpr Config kDelayed = {.name = "delayed",
                             .delay_reuse = true,
                             .separate_classes = true,
                             .guard_pages = true};
constexpr Config kClosed = {.name = "closed",
                            .separate_classes = true,
                            .guard_pages = true,
                            .closed_until_granted = true};
constexpr const Config* kConfigs[] = {&kSeparate, &kDelayed, &kClosed};

class AceRangesModelTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  struct Range {
    unsigned owner;  // a size class, or kSpans and its length
    bool fine;
    UnitIndex first;
    std::uint32_t units;
    std::size_t bytes;
    std::uint64_t seed;
  };
  static constexpr unsigned kSpans = 1000;

  AceRangesModelTest() : random_(GetParam()) {
    HeapOptions options;
    options.decay_ms = 100;
    // Longer ranges than a span needs serve it where there is no limit.
    if (has_limit_) options.heap_limit_bytes = 96 * kMiB;
    memory_.SetMaxMappings(400);
    ace_->Start(options, config_);
  }

  std::uint32_t Below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(random_() % limit);
  }
  const Zone& ZoneOf(bool fine) {
    return fine ? ace_->region().fine() : ace_->region().coarse();
  }

  void Add(Range range, const Ace::Grant& grant) {
    if (grant.first == kNoUnit) return;
    range.first = grant.first;
    range.bytes = range.units * kUnitBytes - grant.guard_bytes;
    range.seed = random_();
    const Address address = ZoneOf(range.fine).UnitAddress(range.first);
    if (grant.known_zero) EXPECT_PRED2(IsBlank, address, range.bytes);
    for (std::uint32_t i = 0; i < range.units; ++i) {
      const auto [at, is_new] =
          owners_.emplace(address + i * kUnitBytes, range.owner);
      EXPECT_EQ(at->second, range.owner);
      reused_ += is_new ? 0 : 1;
    }
    const auto [at, is_new] = live_.emplace(address, range);
    ASSERT_TRUE(is_new);
    if (at != live_.begin()) {
      const Range& before = std::prev(at)->second;
      ASSERT_LE(std::prev(at)->first + before.units * kUnitBytes, address);
    }
    FillContent(address, range.bytes, range.seed);
  }
  void GrantSlab() {
    const auto size_class = static_cast<SizeClass>(Below(kClassCount));
    Add({.owner = size_class,
         .fine = IsTiny(size_class),
         .first = 0,
         .units = kClassLayouts[size_class].slab_units,
         .bytes = 0,
         .seed = 0},
        ace_->GrantSlab(IsTiny(size_class), SlabRange(size_class)));
  }
  void GrantSpan() {
    const std::uint32_t units = RangeUnits(1 + Below(Below(4) == 0 ? 90 : 12));
    const std::size_t alignment = kUnitBytes << (Below(4) == 0 ? Below(7) : 0);
    const Ace::Grant grant = ace_->GrantSpan(units, alignment);
    if (grant.first != kNoUnit) {
      EXPECT_EQ(ZoneOf(false).UnitAddress(grant.first) % alignment, 0U);
    }
    const bool longer = units >= kUnitsPerSuperSlab && !has_limit_;
    EXPECT_LE(grant.units, longer ? 2 * units : units);
    Add({.owner = kSpans + grant.units,
         .fine = false,
         .first = 0,
         .units = grant.units,
         .bytes = 0,
         .seed = 0},
        grant);
  }
  void Release() {
    if (live_.empty()) return;
    auto at = live_.begin();
    std::advance(at, Below(static_cast<std::uint32_t>(live_.size())));
    const Range range = at->second;
    EXPECT_PRED3(HasContent, at->first, range.bytes, range.seed);
    live_.erase(at);
    if (range.owner < kSpans) {
      ace_->ReleaseSlab(IsTiny(static_cast<SizeClass>(range.owner)),
                        SlabRange(static_cast<SizeClass>(range.owner)),
                        range.first);
    } else {
      ace_->ReleaseSpan(range.first, range.units);
    }
  }
  void Step() {
    const std::uint32_t what = Below(100);
    // Waves, so that much is free at times.
    const bool growing = step_ / 400 % 2 == 0;
    if (what < (growing ? 30U : 15U)) {
      GrantSlab();
    } else if (what < (growing ? 55U : 25U)) {
      GrantSpan();
    } else if (what < 94) {
      Release();
    } else if (what < 96) {
      memory_.AdvanceMs(30);
      ace_->TrimIfDue();
    } else if (what < 97) {
      if (Below(3) == 0) ace_->UnmapCaches();
    } else if (what < 98) {
      ace_->PurgeAll();
    } else {
      memory_.RefuseCall(1 + Below(3), ENOMEM, Refuse::kOnce);
    }
    ++step_;
  }

  const bool has_limit_ = GetParam() % 4 != 0;
  const Config& config_ = *kConfigs[GetParam() % std::size(kConfigs)];
  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
  std::mt19937_64 random_;
  std::map<Address, Range> live_;
  // Of each unit that was ever granted, the first owner.
  std::map<Address, unsigned> owners_;
  unsigned step_ = 0;
  unsigned reused_ = 0;
};

TEST_P(AceRangesModelTest, AUnitHasOneOwnerForEver) {
  for (int i = 0; i < 1000 * TestFactor(); ++i) {
    Step();
    if (HasFatalFailure()) return;
    if (i % 50 == 0) ace_->CheckInvariants();
    if (!config_.closed_until_granted) {
      ASSERT_LE(memory_.protected_bytes(), 50 * memory_.PageBytes());
    }
  }
  ace_->CheckInvariants();
  EXPECT_GT(reused_, 100U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AceRangesModelTest,
                         testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace hakmem
