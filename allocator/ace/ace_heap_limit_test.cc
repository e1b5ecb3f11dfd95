// Ace: the heap limit.

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/test_waits.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr Config kSeparate = {.name = "separate", .separate_classes = true};

class AceHeapLimitTest : public testing::Test {
 protected:
  ~AceHeapLimitTest() override { ace_->CheckInvariants(); }
  void Start(std::size_t heap_limit_bytes, const Config& config = kRelease) {
    HeapOptions options;
    options.heap_limit_bytes = heap_limit_bytes;
    ace_->Start(options, config);
  }
  UnitIndex Span(std::uint32_t units) {
    return ace_->GrantSpan(units, kUnitBytes).first;
  }
  // What the limit bounds.
  std::size_t HeldBytes() {
    const Statistics statistics = ace_->Snapshot();
    return statistics.granted_bytes + statistics.cached_bytes;
  }
  static void ExpectOverLimit(const Refusal& refusal) {
    EXPECT_STREQ(FailureReasonName(refusal.reason), "Exhaustion");
    EXPECT_STREQ(FailureDetailName(refusal.detail), "heap_limit");
    EXPECT_EQ(refusal.error_number, 0);
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
};

TEST_F(AceHeapLimitTest, StopsAtTheHeapLimit) {
  constexpr std::size_t kLimit = 21 * kMiB;
  Start(kLimit);
  std::vector<UnitIndex> spans;
  Ace::Grant grant;
  while ((grant = ace_->GrantSpan(16, kUnitBytes)).first != kNoUnit) {
    spans.push_back(grant.first);
  }
  EXPECT_EQ(spans.size(), 21U);
  ExpectOverLimit(grant.refusal);
  EXPECT_EQ(grant.refusal.bytes, 16 * kUnitBytes);
  EXPECT_EQ(ace_->memory_limit().heap_limit_bytes(), kLimit);
  ace_->ReleaseSpan(spans.back(), 16);
  const BlockGrant huge = ace_->GrantHuge(2 * kMiB, kSuperSlabBytes);
  EXPECT_EQ(huge.address, 0U);
  ExpectOverLimit(huge.refusal);
  const Address fits = ace_->GrantHuge(1 * kMiB, kSuperSlabBytes).address;
  EXPECT_NE(fits, 0U);
  EXPECT_EQ(Span(16), kNoUnit);
  EXPECT_TRUE(ReleaseLive(*ace_, fits));
  EXPECT_EQ(memory_.refused(), 0U);
  EXPECT_EQ(Span(16), spans.back());
}

// What one zone, or Huge blocks, have freed makes room for the others: what is
// dirty goes back for it.
TEST_F(AceHeapLimitTest, FreeFramesAreGivenUpForTheOtherZones) {
  Start(8 * kMiB);
  for (int round = 0; round < 3; ++round) {
    const UnitIndex span = Span(4 * kUnitsPerSuperSlab);
    ASSERT_NE(span, kNoUnit);
    EXPECT_EQ(ace_->GrantSlab(true, {1, 1}).first, kNoUnit);
    ace_->ReleaseSpan(span, 4 * kUnitsPerSuperSlab);
    std::vector<UnitIndex> slabs;
    for (int i = 0; i < 8; ++i) {
      slabs.push_back(ace_->GrantSlab(true, {16, 16}).first);
      EXPECT_LE(HeldBytes(), 8 * kMiB);
    }
    EXPECT_NE(slabs.back(), kNoUnit);
    EXPECT_EQ(ace_->GrantHuge(8 * kMiB, kSuperSlabBytes).address, 0U);
    for (const UnitIndex slab : slabs) ace_->ReleaseSlab(true, {16}, slab);
    const Address huge = ace_->GrantHuge(8 * kMiB, kSuperSlabBytes).address;
    ASSERT_NE(huge, 0U);
    EXPECT_EQ(HeldBytes(), 8 * kMiB);
    EXPECT_EQ(Span(1), kNoUnit);
    EXPECT_TRUE(ReleaseLive(*ace_, huge));
    ace_->CheckInvariants();
  }
}

// The limit is on what is granted: in which pieces the rest lies is no matter.
TEST_F(AceHeapLimitTest, TheHeapLimitAllowsLongRunsBesideShortPieces) {
  Start(4 * kMiB);
  std::vector<UnitIndex> spans;
  for (int i = 0; i < 64; ++i) spans.push_back(Span(1));
  EXPECT_EQ(Span(1), kNoUnit);
  for (std::size_t i = 0; i < spans.size(); i += 2) {
    ace_->ReleaseSpan(spans[i], 1);
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_NE(Span(2), kNoUnit);
    EXPECT_LE(HeldBytes(), 4 * kMiB);
  }
  EXPECT_EQ(Span(1), kNoUnit);
}

// What is granted while a grant waits for the kernel counts for that one, too.
TEST_F(AceHeapLimitTest, HoldsForAGrantThatWaits) {
  for (const Config* config : {&kRelease, &kSeparate}) {
    ranges_ = {};
    ace_ = std::make_unique<WholeAce>(memory_, &ranges_);
    Start(3 * kMiB, *config);
    const UnitIndex span = Span(kUnitsPerSuperSlab);
    ASSERT_NE(Span(1), kNoUnit);
    memory_.LimitBytes(memory_.mapped_bytes());
    ace_->ReleaseSpan(span, kUnitsPerSuperSlab);
    std::optional<TestThread> other;
    memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
      if (other) return;
      other.emplace([&] {
        const Ace::Grant grant =
            ace_->GrantSpan(kUnitsPerSuperSlab, kUnitBytes);
        EXPECT_EQ(grant.first, kNoUnit);
        ExpectOverLimit(grant.refusal);
      });
      other->AwaitSleepIn(SYS_futex);
      EXPECT_NE(Span(kUnitsPerSuperSlab - 1), kNoUnit);
    });
    ace_->PurgeAll();
    other->Join();
    memory_.WatchLongCalls(nullptr);
    memory_.LimitBytes(~std::size_t{0});
    ace_->CheckInvariants();
    EXPECT_LE(HeldBytes(), 3 * kMiB);
  }
}

// Where the kernel takes nothing back, a grant at the limit does not ask it for
// all that there is; and what it will not take back keeps nothing else.
TEST_F(AceHeapLimitTest, ARefusedPurgeIsTriedOnceForAGrant) {
  constexpr int kFrames = 24;
  constexpr std::uint32_t kPart = 10;  // too little to split a huge page for
  HeapOptions options;
  options.heap_limit_bytes = 64 * kMiB;
  options.huge_pages = static_cast<std::uint64_t>(HugePages::kOn);
  ace_->Start(options);
  std::vector<UnitIndex> parts;
  for (int i = 0; i < kFrames; ++i) {
    ASSERT_NE(Span(kUnitsPerSuperSlab - kPart), kNoUnit);
    parts.push_back(Span(kPart));
  }
  for (const UnitIndex part : parts) ace_->ReleaseSpan(part, kPart);
  while (HeldBytes() < 64 * kMiB) Span(kUnitsPerSuperSlab);
  const auto refuse = [this](FakeVirtualMemory::Refuse how) {
    memory_.RefuseCall(1, EAGAIN, how, VmCall::kPurge);
  };
  refuse(FakeVirtualMemory::Refuse::kFromThenOn);
  const std::uint64_t calls = memory_.calls(VmCall::kPurge);
  EXPECT_NE(Span(1), kNoUnit);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), calls + 1);
  // Those behind it are tried for the next grants.
  refuse(FakeVirtualMemory::Refuse::kOnce);
  EXPECT_NE(Span(1), kNoUnit);
  EXPECT_NE(Span(1), kNoUnit);
  EXPECT_LE(HeldBytes(), 64 * kMiB);
}

// The heap limit counts as a group's does, from the beginning.
TEST_F(AceHeapLimitTest, BoundsWhatIsKept) {
  HeapOptions options;
  options.heap_limit_bytes = 64 * kMiB;
  options.find_memory_limit = [] { return std::uint64_t{128 * kMiB}; };
  ace_->Start(options);
  EXPECT_EQ(ace_->memory_limit().bytes(), 64 * kMiB);
  EXPECT_EQ(ace_->memory_limit().MostOfThread(), 64 * kMiB / 128);
  EXPECT_FALSE(ace_->memory_limit().HasRoomForHugePages());
  while (ace_->GrantSlab(true, {16, 16}).first != kNoUnit) {
  }
  EXPECT_EQ(ace_->memory_limit().bytes(), 64 * kMiB);
}

}  // namespace
}  // namespace hakmem
