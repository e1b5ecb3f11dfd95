// UnitPool against a model that knows of each unit what it is.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr FrameIndex kFrames = 400;

class UnitPoolModelTest : public testing::TestWithParam<unsigned> {
 protected:
  enum class State : std::uint8_t { kAbsent, kFree, kGranted };
  struct Unit {
    State state = State::kAbsent;
    bool dirty = false;
  };
  struct Run {
    UnitIndex first;
    std::uint32_t units;
  };

  UnitPoolModelTest() : random_(GetParam()) {
    const Address base = memory_.RegionRange().begin;
    const Address next = base + (kFrames + 1) * kSuperSlabBytes;
    const Address tables[] = {next, next + kGiB, next + 2 * kGiB,
                              next + 3 * kGiB};
    zone_.Place(base, kFrames, tables, memory_.PageBytes());
  }

  std::uint32_t Below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(random_()) % limit;
  }
  bool AllFree(UnitIndex first, std::uint32_t units) const {
    if (first + units > model_.size()) return false;
    return std::all_of(
        model_.begin() + first, model_.begin() + first + units,
        [](const Unit& unit) { return unit.state == State::kFree; });
  }
  bool AnyDirty(UnitIndex first, std::uint32_t units) const {
    return std::any_of(model_.begin() + first, model_.begin() + first + units,
                       [](const Unit& unit) { return unit.dirty; });
  }
  // Whether units within one SuperSlab, or whole SuperSlabs, hold as many.
  bool Fits(std::uint32_t units) const {
    for (UnitIndex unit = 0; unit < model_.size(); ++unit) {
      if (units >= kUnitsPerSuperSlab && UnitInFrame(unit) != 0) continue;
      if (units < kUnitsPerSuperSlab &&
          UnitInFrame(unit) + units > kUnitsPerSuperSlab) {
        continue;
      }
      if (AllFree(unit, RoundUp(units, units < kUnitsPerSuperSlab
                                           ? 1U
                                           : kUnitsPerSuperSlab))) {
        return true;
      }
    }
    return false;
  }
  void Set(Run run, State state, bool dirty) {
    for (UnitIndex i = run.first; i < run.first + run.units; ++i) {
      model_[i] = {state, dirty};
    }
  }

  void Grow(FrameIndex frames) {
    if (zone_.frame_count() + frames > kFrames) return;
    const Zone::Extension extension = zone_.Extend(memory_, frames);
    ASSERT_EQ(extension.frames, frames);
    pool_.AddFrames(extension.first, frames);
    if (GetParam() % 2 == 0 && Below(2) == 0) {
      pool_.huge().Add(extension.first, frames);
    }
    model_.resize(FirstUnitOfFrame(zone_.frame_count()), {State::kFree});
  }
  void Grant() {
    const std::uint32_t units =
        Below(4) != 0 ? 1 + Below(20) : 1 + Below(5 * kUnitsPerSuperSlab);
    const std::uint32_t alignment = 1U << (Below(3) == 0 ? Below(8) : 0);
    const UnitGrant grant = pool_.Grant(units, alignment);
    if (grant.first == kNoUnit) {
      // The lists do not tell where aligned runs are; those may be missed.
      EXPECT_TRUE(alignment != 1 || !Fits(units));
      Grow(DivideRoundUp(units, kUnitsPerSuperSlab));
      return;
    }
    ASSERT_TRUE(AllFree(grant.first, units));
    EXPECT_EQ(grant.known_zero, !AnyDirty(grant.first, units));
    EXPECT_EQ(zone_.UnitAddress(grant.first) % (alignment * kUnitBytes), 0U);
    if (alignment != 1 && units < kUnitsPerSuperSlab) {
      EXPECT_EQ(FrameOfUnit(grant.first), FrameOfUnit(grant.first + units - 1));
    }
    runs_.push_back({grant.first, units});
    Set(runs_.back(), State::kGranted, false);
  }
  // Releases a run, or its tail.
  void Release() {
    if (runs_.empty()) return;
    const std::uint32_t at = Below(static_cast<std::uint32_t>(runs_.size()));
    Run run = runs_[at];
    const std::uint32_t kept = Below(3) == 0 ? Below(run.units) : 0;
    if (kept != 0) {
      runs_[at].units = kept;
    } else {
      runs_[at] = runs_.back();
      runs_.pop_back();
    }
    run = {run.first + kept, run.units - kept};
    const bool dirty = Below(4) != 0;
    pool_.Release(run.first, run.units, dirty);
    Set(run, State::kFree, dirty);
  }
  void Extend() {
    if (runs_.empty()) return;
    Run& run = runs_[Below(static_cast<std::uint32_t>(runs_.size()))];
    const std::uint32_t more = 1 + Below(40);
    const UnitIndex next = run.first + run.units;
    const bool granted = pool_.GrantAt(next, more);
    EXPECT_EQ(granted, AllFree(next, more));
    if (!granted) return;
    Set({next, more}, State::kGranted, false);
    run.units += more;
  }
  std::size_t PurgeAll() {
    FrameIndex next = 0;
    bool refused = false;
    const std::size_t bytes = pool_.Purge(pool_.dirty().count());
    return bytes + pool_.PurgePartsOfHuge(pool_.dirty().count(), next, refused);
  }
  void Purge() {
    if (Below(4) == 0) memory_.RefuseCall(1 + Below(3), ENOMEM);
    const std::uint64_t units = Below(200);
    memory_.ForgetPurges();
    if (Below(8) == 0) {
      PurgeAll();
    } else {
      pool_.Purge(units);
    }
    memory_.RefuseNothing();
    for (UnitIndex unit = 0; unit < model_.size(); ++unit) {
      if (model_[unit].state == State::kFree &&
          memory_.IsPurged(zone_.UnitAddress(unit), kUnitBytes)) {
        model_[unit].dirty = false;
      }
    }
  }
  void Unmap() {
    if (Below(2) == 0) memory_.RefuseCall(1 + Below(5), ENOMEM);
    std::size_t guards = 0;
    for (FrameIndex end = zone_.frame_count(); end != 0;)
      pool_.UnmapIdle(~std::size_t{0}, /*may_split=*/true, end, guards);
    memory_.RefuseNothing();
    for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
      if (zone_.super_slab(frame).presence != Presence::kUnmapped) continue;
      const UnitIndex first = FirstUnitOfFrame(frame);
      ASSERT_TRUE(model_[first].state == State::kAbsent ||
                  AllFree(first, kUnitsPerSuperSlab));
      Set({first, kUnitsPerSuperSlab}, State::kAbsent, false);
    }
  }
  // Whether so many neighbouring frames are not mapped.
  bool IsAnyAbsent(FrameIndex frames) const {
    FrameIndex run = 0;
    for (FrameIndex frame = 0; frame < zone_.frame_count() && run != frames;
         ++frame) {
      const bool absent =
          model_[FirstUnitOfFrame(frame)].state == State::kAbsent;
      if (frame != 0 && pool_.huge().Has(frame) != pool_.huge().Has(frame - 1))
        run = 0;
      run = absent ? run + 1 : 0;
    }
    return run == frames;
  }
  void Remap() {
    for (std::uint32_t i = Below(4); i != 0; --i) {
      const FrameIndex frames = 1 + Below(4);
      const FrameIndex frame = pool_.unmapped().Find(frames);
      ASSERT_EQ(frame != kNoFrame, IsAnyAbsent(frames));
      if (frame == kNoFrame) return;
      ASSERT_TRUE(pool_.Remap(frame, frames, Access::kOpen).ok());
      Set({FirstUnitOfFrame(frame), frames * kUnitsPerSuperSlab}, State::kFree,
          false);
    }
  }

  void ExpectAgree() {
    pool_.CheckInvariants();
    zone_.CheckInvariants();
    std::uint64_t free_units = 0;
    std::uint64_t dirty_units = 0;
    for (const Unit& unit : model_) {
      free_units += unit.state == State::kFree ? 1 : 0;
      dirty_units += unit.dirty ? 1 : 0;
    }
    ASSERT_EQ(pool_.free_units(), free_units);
    ASSERT_EQ(pool_.dirty().count(), dirty_units);
  }

  FakeVirtualMemory memory_;
  Zone zone_{{kCoarseGranuleShift, kCoarseDescriptorBytes}};
  FutexLock lock_;
  UnitPool pool_{zone_, lock_, memory_};
  std::mt19937 random_;
  std::vector<Unit> model_;
  std::vector<Run> runs_;
};

TEST_P(UnitPoolModelTest, AgreesAfterEachStep) {
  for (int step = 0; step < 4000 && !HasFatalFailure(); ++step) {
    const bool grow = (step / 500) % 2 == 0;
    switch (Below(20)) {
      case 0:
        Purge();
        break;
      case 1:
        if (Below(8) == 0) Unmap();
        break;
      case 2:
        Remap();
        break;
      case 3:
      case 4:
        Extend();
        break;
      case 5:
        grow ? Release() : Grant();
        break;
      default:
        grow ? Grant() : Release();
        break;
    }
    ExpectAgree();
  }
  while (!runs_.empty()) Release();
  ExpectAgree();
  EXPECT_GT(zone_.frame_count(), 20U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, UnitPoolModelTest, testing::Range(1U, 7U));

}  // namespace
}  // namespace hakmem
