// Ace with separate classes on a kernel that has guard regions.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

constexpr Config kOpen = {
    .name = "open", .separate_classes = true, .guard_pages = true};
constexpr Config kClosed = {.name = "closed",
                            .separate_classes = true,
                            .guard_pages = true,
                            .closed_until_granted = true};
// Each guard page that splits a mapping would take two of them.
constexpr std::size_t kMaxMappings = 640;
constexpr std::uint32_t kUnits = 5;
constexpr int kSpans = 1000;

class AceGuardRegionsTest : public testing::TestWithParam<bool> {
 protected:
  AceGuardRegionsTest() {
    memory_.UseGuardRegions();
    memory_.SetMaxMappings(kMaxMappings);
    memory_.LimitMappings(kMaxMappings);
    memory_.SetNowMs(10'000);
    HeapOptions options;
    options.huge_pages = static_cast<std::uint64_t>(HugePages::kOff);
    ace_->Start(options, GetParam() ? kClosed : kOpen);
  }
  ~AceGuardRegionsTest() override { ace_->CheckInvariants(); }

  Address AddressOf(UnitIndex unit) {
    return ace_->region().coarse().UnitAddress(unit);
  }
  // Writes to all of it but its guard, which is closed.
  UnitIndex Span() {
    const Ace::Grant grant = ace_->GrantSpan(kUnits, kUnitBytes);
    EXPECT_NE(grant.first, kNoUnit);
    EXPECT_EQ(grant.guard_bytes, memory_.PageBytes());
    const std::size_t bytes = kUnits * kUnitBytes - grant.guard_bytes;
    std::memset(reinterpret_cast<void*>(AddressOf(grant.first)), 1, bytes);
    EXPECT_FALSE(memory_.IsAnyProtected(AddressOf(grant.first), bytes));
    EXPECT_TRUE(
        memory_.IsProtected(AddressOf(grant.first) + bytes, grant.guard_bytes));
    return grant.first;
  }
  std::vector<UnitIndex> Spans(int count) {
    std::vector<UnitIndex> spans;
    for (int i = 0; i < count; ++i) spans.push_back(Span());
    return spans;
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
};

INSTANTIATE_TEST_SUITE_P(Variants, AceGuardRegionsTest, testing::Bool());

TEST_P(AceGuardRegionsTest, EachRangeHasAGuardAndNoneTakesAMapping) {
  const std::size_t before = memory_.mappings();
  Spans(kSpans);
  EXPECT_LE(memory_.mappings(), before + 8);
  EXPECT_EQ(memory_.refused(), 0U);
}

TEST_P(AceGuardRegionsTest, GuardsStayWhenMemoryGoesBack) {
  const std::vector<UnitIndex> spans = Spans(kSpans);
  const std::size_t closed = memory_.protected_bytes();
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, kUnits);
  ace_->PurgeAll();
  EXPECT_EQ(memory_.protected_bytes(), closed);
  Spans(kSpans);
  EXPECT_EQ(memory_.protected_bytes(), closed);
}

TEST_P(AceGuardRegionsTest, UnmappedRangesHaveGuardsAgain) {
  for (int round = 0; round < 3; ++round) {
    const std::vector<UnitIndex> spans = Spans(100);
    for (const UnitIndex span : spans) ace_->ReleaseSpan(span, kUnits);
    EXPECT_GT(ace_->UnmapCaches(), 0U);
    ace_->CheckInvariants();
  }
}

TEST_P(AceGuardRegionsTest, WhatWasNeverGrantedIsClosed) {
  const UnitIndex span = Span();
  const Address next = AddressOf(span + kUnits);
  EXPECT_EQ(memory_.IsProtected(next, kUnitBytes), GetParam());
}

TEST_P(AceGuardRegionsTest, LosesNothingWhicheverCallIsRefused) {
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    memory_.RefuseCall(nth, ENOMEM);
    const std::uint32_t units =
        RangeUnits(20 + static_cast<std::uint32_t>(nth));
    for (int i = 0; i < 4; ++i) {
      const UnitIndex span = ace_->GrantSpan(units, kUnitBytes).first;
      ace_->CheckInvariants();
      if (span != kNoUnit) ace_->ReleaseSpan(span, units);
    }
    memory_.RefuseNothing();
    ace_->CheckInvariants();
  }
}

}  // namespace
}  // namespace hakmem
