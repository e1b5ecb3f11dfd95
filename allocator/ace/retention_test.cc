#include "allocator/ace/retention.h"

#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kDecayMs = 500;
constexpr std::uint64_t kIntervalMs = kDecayMs / 2;
constexpr std::uint32_t kUnitsOfMiB = kMiB / kUnitBytes;
constexpr std::int64_t kLeastSlackUnits = 4 * kUnitsOfMiB;

class RetentionTest : public testing::Test {
 protected:
  RetentionTest() { Start({}); }
  ~RetentionTest() override { retention_.CheckInvariants(); }

  void Start(const HeapOptions& with, bool separate_classes = false) {
    HeapOptions options = with;
    options.decay_ms = kDecayMs;
    retention_.Start(options, separate_classes, now_ms_);
  }
  void Grant(std::uint32_t mib) { retention_.NoteGrant(mib * kUnitsOfMiB); }
  void Release(std::uint32_t mib) {
    retention_.NoteRelease(mib * kUnitsOfMiB, now_ms_);
  }
  void ReleaseLater(std::uint32_t mib) {
    retention_.NoteRelease(mib * kUnitsOfMiB, now_ms_ + 1);
  }
  // How much dirty memory may stay.
  std::int64_t KeptUnits() const { return -retention_.ExcessUnits(0); }
  Retention::Interval NextInterval() {
    now_ms_ += kIntervalMs;
    EXPECT_TRUE(retention_.IsDue(now_ms_));
    return retention_.StartInterval(now_ms_);
  }

  std::uint64_t now_ms_ = 10'000;
  Retention retention_;
};

TEST_F(RetentionTest, KeepsASlackOfAnEmptyHeap) {
  EXPECT_EQ(KeptUnits(), kLeastSlackUnits);
}

TEST_F(RetentionTest, KeepsWhatComesAndGoes) {
  Grant(64);
  Release(64);
  EXPECT_EQ(KeptUnits(), kLeastSlackUnits + 64 * kUnitsOfMiB * 17 / 16);
}

// Memory that was held for long was not taken of late.
TEST_F(RetentionTest, KeepsLittleOfWhatWasHeldForLong) {
  Grant(64);
  NextInterval();
  NextInterval();
  Release(64);
  EXPECT_EQ(KeptUnits(), kLeastSlackUnits + 64 * kUnitsOfMiB / 16);
}

TEST_F(RetentionTest, KeepsNoMoreThanTheRecentPeak) {
  Grant(64);
  Release(64);
  Grant(48);
  EXPECT_EQ(KeptUnits(), kLeastSlackUnits + (16 + 4) * kUnitsOfMiB);
  retention_.ForgetPeak();
  EXPECT_EQ(KeptUnits(), kLeastSlackUnits + 3 * kUnitsOfMiB);
}

TEST_F(RetentionTest, AnIntervalThatNobodyEndedCountsAsTwo) {
  Grant(64);
  now_ms_ += kIntervalMs;
  NextInterval();
  Release(64);
  EXPECT_EQ(KeptUnits(), kLeastSlackUnits + 64 * kUnitsOfMiB / 16);
}

TEST_F(RetentionTest, AnIntervalWithoutAReleaseIsQuiet) {
  Grant(2);
  EXPECT_TRUE(NextInterval().quiet);
  Release(1);
  EXPECT_TRUE(NextInterval().quiet);
  ReleaseLater(1);
  EXPECT_FALSE(NextInterval().quiet);
}

// As in a process that was restored elsewhere.
TEST_F(RetentionTest, AClockThatGoesBackEndsTheInterval) {
  Grant(2);
  ReleaseLater(1);
  now_ms_ -= 20 * kIntervalMs;
  EXPECT_TRUE(NextInterval().quiet);
  EXPECT_FALSE(retention_.IsDue(now_ms_ + kIntervalMs - 1));
  EXPECT_TRUE(NextInterval().quiet);
}

// Half of the recent peak at most, a sixteenth less in each interval, and none
// once long runs come no more.
TEST_F(RetentionTest, TheSlackForLongRunsGrowsAndFalls) {
  Grant(64);
  const std::int64_t before = KeptUnits();
  retention_.NoteExcess(kUnitsPerSuperSlab, 16 * kUnitsOfMiB);
  EXPECT_EQ(KeptUnits(), before + 16 * kUnitsOfMiB);
  for (int i = 0; i < 5; ++i) {
    retention_.NoteExcess(kUnitsPerSuperSlab, 16 * kUnitsOfMiB);
  }
  EXPECT_EQ(KeptUnits(), before + 32 * kUnitsOfMiB);
  ReleaseLater(1);
  EXPECT_EQ(NextInterval().kept_units, 30U * kUnitsOfMiB);
  ReleaseLater(1);
  EXPECT_EQ(NextInterval().kept_units, 0U);
}

TEST_F(RetentionTest, ShortRunsWidenNoSlack) {
  Grant(64);
  const std::int64_t before = KeptUnits();
  retention_.NoteExcess(4, 16 * kUnitsOfMiB);
  EXPECT_EQ(KeptUnits(), before);
}

TEST_F(RetentionTest, SeparateClassesKeepHalfOfWhatIsGranted) {
  Start({}, /*separate_classes=*/true);
  Grant(64);
  EXPECT_EQ(KeptUnits(), 2 * kLeastSlackUnits + 32 * kUnitsOfMiB);
  retention_.NoteLongRange(32 * kUnitsOfMiB);
  EXPECT_EQ(KeptUnits(), 2 * kLeastSlackUnits + 16 * kUnitsOfMiB);
}

TEST_F(RetentionTest, TheHeapLimitCountsHugeBlocksAndDirtyMemory) {
  HeapOptions options;
  options.heap_limit_bytes = 64 * kMiB;
  Start(options);
  EXPECT_TRUE(retention_.HasRoomFor(64 * kMiB));
  EXPECT_FALSE(retention_.HasRoomFor(64 * kMiB + 1));
  EXPECT_FALSE(retention_.HasRoomFor(~std::size_t{0}));
  retention_.NoteHuge(8 * kMiB);
  EXPECT_TRUE(retention_.HasRoomFor(56 * kMiB));
  EXPECT_FALSE(retention_.HasRoomFor(56 * kMiB + 1));
  Grant(40);
  EXPECT_TRUE(retention_.HasRoomFor(16 * kMiB));
  EXPECT_EQ(retention_.OverLimitUnits(16 * kUnitsOfMiB), 0);
  EXPECT_EQ(retention_.OverLimitUnits(17 * kUnitsOfMiB), kUnitsOfMiB);
}

TEST_F(RetentionTest, NoLimitIsNeverExceeded) {
  Grant(1024);
  retention_.NoteHuge(kGiB);
  EXPECT_TRUE(retention_.HasRoomFor(~std::size_t{0} >> 1));
  EXPECT_LT(retention_.OverLimitUnits(1 << 30), 0);
}

}  // namespace
}  // namespace hakmem
