// Ace: addresses of SuperSlabs that were unmapped under pressure serve again.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr FrameIndex kFrames = 10;
constexpr std::uint32_t kUnits = kFrames * kUnitsPerSuperSlab;

class AceUnmappedTest : public testing::Test {
 protected:
  AceUnmappedTest() { Start(HeapOptions()); }
  ~AceUnmappedTest() override { ace_->CheckInvariants(); }
  void Start(const HeapOptions& options) {
    ace_ = std::make_unique<WholeAce>(memory_);
    ace_->Start(options);
  }
  UnitIndex Span(std::uint32_t units) {
    return ace_->GrantSpan(units, kUnitBytes).first;
  }
  FrameIndex FrameCount() const {
    return ace_->region().coarse().frame_count();
  }
  // Spans come and go, and nothing is left mapped.
  void UnmapFrames(FrameIndex frames) {
    const std::uint32_t units = frames * kUnitsPerSuperSlab;
    const UnitIndex span = Span(units);
    ASSERT_NE(span, kNoUnit);
    ace_->ReleaseSpan(span, units);
    ASSERT_EQ(ace_->UnmapCaches(), frames * kSuperSlabBytes);
    ASSERT_EQ(ace_->mapped_bytes(), 0U);
  }
  // Something else takes a part of a frame.
  void Occupy(FrameIndex frame) {
    ASSERT_TRUE(
        memory_.MapAt(ace_->region().coarse().FrameAddress(frame), kUnitBytes)
            .ok());
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_;
};

// As after a refused call, again and again.
TEST_F(AceUnmappedTest, LongRunsGetTheirAddressesBack) {
  for (int cycle = 0; cycle < 20; ++cycle) {
    UnmapFrames(kFrames);
    EXPECT_EQ(FrameCount(), kFrames);
  }
  // One call of the kernel for each cycle but the first, whose other calls are
  // for tables.
  const std::uint64_t calls = memory_.calls(VmCall::kMap);
  UnmapFrames(kFrames);
  EXPECT_EQ(memory_.calls(VmCall::kMap), calls + 1);
}

TEST_F(AceUnmappedTest, RunsOfAllLengthsShareThem) {
  UnmapFrames(kFrames);
  EXPECT_EQ(Span(3 * kUnitsPerSuperSlab), 0U);
  EXPECT_EQ(Span(1), FirstUnitOfFrame(3));
  EXPECT_NE(Span(6 * kUnitsPerSuperSlab), kNoUnit);
  EXPECT_EQ(FrameCount(), kFrames);
  EXPECT_EQ(ace_->mapped_bytes(), kFrames * kSuperSlabBytes);
  // There is none for more.
  EXPECT_NE(Span(2 * kUnitsPerSuperSlab), kNoUnit);
  EXPECT_GT(FrameCount(), kFrames);
}

TEST_F(AceUnmappedTest, LookElsewhereWhereSomethingElseHasSome) {
  UnmapFrames(kFrames);
  Occupy(2);
  Occupy(4);
  EXPECT_EQ(Span(4 * kUnitsPerSuperSlab), FirstUnitOfFrame(5));
  const Zone& zone = ace_->region().coarse();
  EXPECT_EQ(zone.super_slab(2).presence, Presence::kForeign);
  EXPECT_EQ(zone.super_slab(4).presence, Presence::kForeign);
  EXPECT_EQ(Span(2 * kUnitsPerSuperSlab), 0U);
  EXPECT_EQ(FrameCount(), kFrames);
  ace_->CheckInvariants();
}

// However many something else has, for one grant some are tried.
TEST_F(AceUnmappedTest, NotAllThatSomethingElseHasAreTried) {
  constexpr FrameIndex kLong = kMaxSpanBytes / kSuperSlabBytes;
  constexpr FrameIndex kAll = 3 * kLong;
  constexpr std::uint32_t kLongUnits = kLong * kUnitsPerSuperSlab;
  for (int i = 0; i < 3; ++i) ASSERT_NE(Span(kLongUnits), kNoUnit);
  for (UnitIndex first = 0; first != 3 * kLongUnits; first += kLongUnits) {
    ace_->ReleaseSpan(first, kLongUnits);
  }
  ASSERT_EQ(ace_->UnmapCaches(), kAll * kSuperSlabBytes);
  for (FrameIndex frame = 0; frame < kAll; ++frame) Occupy(frame);
  const std::uint64_t calls = memory_.calls(VmCall::kMap);
  EXPECT_GE(Span(1), FirstUnitOfFrame(kAll));
  EXPECT_LE(memory_.calls(VmCall::kMap), calls + kAll - 100);
}

// They are nobody's then, and serve the next one.
TEST_F(AceUnmappedTest, StayUnmappedWhenTheKernelRefuses) {
  UnmapFrames(kFrames);
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  EXPECT_EQ(Span(kUnits), kNoUnit);
  memory_.RefuseNothing();
  ace_->CheckInvariants();
  EXPECT_EQ(Span(kUnits), 0U);
  EXPECT_EQ(FrameCount(), kFrames);
}

TEST_F(AceUnmappedTest, CountForTheHeapLimit) {
  HeapOptions options;
  options.heap_limit_bytes = kFrames * kSuperSlabBytes;
  Start(options);
  UnmapFrames(kFrames);
  ASSERT_NE(Span(kUnitsPerSuperSlab), kNoUnit);
  EXPECT_EQ(ace_->GrantSpan(kUnits, kUnitBytes).refusal.detail,
            FailureDetail::kHeapLimit);
  EXPECT_EQ(Span(kUnits - kUnitsPerSuperSlab), kUnitsPerSuperSlab);
  EXPECT_EQ(FrameCount(), kFrames);
}

// Where there is no room for a whole SuperSlab, what a run needs is mapped, and
// what the next one needs behind it.
TEST_F(AceUnmappedTest, RunsTakeWhatThereIs) {
  ASSERT_EQ(Span(1), 0U);
  const std::size_t before = memory_.mapped_bytes();
  memory_.LimitBytes(before + 20 * kUnitBytes);
  constexpr std::uint32_t kLong = kUnitsPerSuperSlab + 10;
  EXPECT_EQ(Span(kLong), 1U);  // 31 units are free already
  EXPECT_EQ(memory_.mapped_bytes(), before + 11 * kUnitBytes);
  ace_->CheckInvariants();
  EXPECT_EQ(Span(5), 1 + kLong);
  EXPECT_EQ(memory_.mapped_bytes(), before + 16 * kUnitBytes);
  EXPECT_EQ(Span(5), kNoUnit);
  EXPECT_EQ(Span(4), 1 + kLong + 5);
  ace_->CheckInvariants();
  EXPECT_EQ(memory_.mapped_bytes(), before + 20 * kUnitBytes);
  EXPECT_EQ(FrameCount(), 2U);
}

// A growth step is not asked for again while not even a SuperSlab can be had.
TEST_F(AceUnmappedTest, ARefusedZoneAsksForWhatIsNeeded) {
  ASSERT_EQ(Span(20 * kUnitsPerSuperSlab), 0U);
  memory_.LimitBytes(memory_.mapped_bytes());
  const auto calls_of_refused = [this] {
    const std::uint64_t before = memory_.calls(VmCall::kMap);
    EXPECT_EQ(Span(1), kNoUnit);
    return memory_.calls(VmCall::kMap) - before;
  };
  const std::uint64_t first = calls_of_refused();
  EXPECT_LT(calls_of_refused(), first);
  memory_.LimitBytes(SIZE_MAX);
  EXPECT_EQ(Span(kUnitsPerSuperSlab), FirstUnitOfFrame(20));
  EXPECT_EQ(FrameCount(), 21U);
  EXPECT_EQ(Span(kUnitsPerSuperSlab), FirstUnitOfFrame(21));
  EXPECT_EQ(FrameCount(), 23U);
}

// A slab's alignment may leave units before it, which serve others.
TEST_F(AceUnmappedTest, AlignedRunsTakeWhatThereIs) {
  ASSERT_EQ(Span(kUnitsPerSuperSlab), 0U);
  memory_.LimitBytes(memory_.mapped_bytes() + 9 * kUnitBytes);
  EXPECT_EQ(Span(2), kUnitsPerSuperSlab);
  EXPECT_EQ(ace_->GrantSpan(4, 4 * kUnitBytes).first, kUnitsPerSuperSlab + 4);
  EXPECT_EQ(Span(2), kUnitsPerSuperSlab + 2);
  EXPECT_EQ(Span(2), kNoUnit);
  EXPECT_EQ(Span(1), kUnitsPerSuperSlab + 8);
  ace_->CheckInvariants();
  memory_.LimitBytes(SIZE_MAX);
  EXPECT_EQ(Span(kUnitsPerSuperSlab), FirstUnitOfFrame(2));
}

// The rest of a SuperSlab that something else has taken is nobody's.
TEST_F(AceUnmappedTest, RunsLookElsewhereWhereSomethingElseHasTheRest) {
  ASSERT_EQ(Span(kUnitsPerSuperSlab), 0U);
  memory_.LimitBytes(memory_.mapped_bytes() + 9 * kUnitBytes);
  ASSERT_EQ(Span(4), kUnitsPerSuperSlab);
  const Address next =
      ace_->region().coarse().UnitAddress(kUnitsPerSuperSlab + 4);
  ASSERT_TRUE(memory_.MapAt(next, kUnitBytes).ok());
  EXPECT_EQ(Span(4), FirstUnitOfFrame(2));
  ace_->CheckInvariants();
}

// Nor is a SuperSlab that is met where a whole one was refused: what is free
// before it is no part of the run.
TEST_F(AceUnmappedTest, RunsBeginBehindWhatSomethingElseHas) {
  ASSERT_EQ(Span(kUnitsPerSuperSlab - 7), 0U);
  Occupy(1);
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kOnce, VmCall::kMap);
  EXPECT_EQ(Span(12), FirstUnitOfFrame(2));
  EXPECT_EQ(Span(7), kUnitsPerSuperSlab - 7);
  ace_->CheckInvariants();
}

// And when they have ended, others that are as long.
TEST_F(AceUnmappedTest, RunsTakeWhatOthersHaveLeft) {
  ASSERT_EQ(Span(1), 0U);
  memory_.LimitBytes(memory_.mapped_bytes() + 11 * kUnitBytes);
  constexpr std::uint32_t kLong = kUnitsPerSuperSlab + 10;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Span(kLong), 1U);
    ace_->ReleaseSpan(1, kLong);
    ace_->UnmapCaches();
    ace_->CheckInvariants();
  }
}

}  // namespace
}  // namespace hakmem
