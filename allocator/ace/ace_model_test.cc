// Ace with random use: grants never overlap, and what it says to be zero is.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class AceModelTest : public testing::TestWithParam<unsigned> {
 protected:
  struct Run {
    bool fine;
    bool slab;
    UnitIndex first;
    std::uint32_t units;
    std::uint64_t seed;
  };

  AceModelTest() : random_(GetParam()) {
    HeapOptions options;
    options.decay_ms = 100;
    options.heap_limit_bytes = 64 * kMiB;
    ace_.Start(options);
  }

  std::uint32_t Below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(random_() % limit);
  }
  Address AddressOf(const Run& run) {
    const Region& region = ace_.region();
    return (run.fine ? region.fine() : region.coarse()).UnitAddress(run.first);
  }
  void Add(Run run, bool known_zero) {
    const Address address = AddressOf(run);
    const std::size_t bytes = run.units * kUnitBytes;
    if (known_zero) {
      EXPECT_PRED2(IsBlank, address, bytes);
      ++known_zero_;
    }
    const auto [at, is_new] = live_.emplace(address, run);
    ASSERT_TRUE(is_new);
    if (at != live_.begin()) {
      const auto before = std::prev(at);
      ASSERT_LE(before->first + before->second.units * kUnitBytes, address);
    }
    if (std::next(at) != live_.end()) {
      ASSERT_LE(address + bytes, std::next(at)->first);
    }
    FillContent(address, bytes, run.seed);
  }

  void GrantSlab() {
    const bool fine = Below(2) == 0;
    const std::uint32_t units = 1U << (2 * Below(3));
    const Ace::Grant grant = ace_.GrantSlab(fine, {units, units});
    if (grant.first == kNoUnit) return NoteRefusal(grant.refusal);
    Add({fine, true, grant.first, units, random_()}, grant.known_zero);
  }
  void GrantSpan() {
    const std::uint32_t units = 1 + Below(Below(4) == 0 ? 150 : 20);
    const std::size_t alignment = kUnitBytes << (Below(3) == 0 ? Below(8) : 0);
    const Ace::Grant grant = ace_.GrantSpan(units, alignment);
    if (grant.first == kNoUnit) return NoteRefusal(grant.refusal);
    Add({false, false, grant.first, units, random_()}, grant.known_zero);
  }
  void NoteRefusal(const Refusal& refusal) {
    EXPECT_NE(refusal.reason, FailureReason::kNone);
    EXPECT_NE(refusal.detail, FailureDetail::kNone);
    ++refused_;
  }
  std::map<Address, Run>::iterator Pick() {
    auto at = live_.begin();
    std::advance(at, Below(static_cast<std::uint32_t>(live_.size())));
    return at;
  }
  void Release() {
    if (live_.empty()) return;
    const auto at = Pick();
    const Run run = at->second;
    EXPECT_PRED3(HasContent, at->first, run.units * kUnitBytes, run.seed);
    live_.erase(at);
    if (run.slab) {
      ace_.ReleaseSlab(run.fine, {run.units}, run.first);
    } else {
      ace_.ReleaseSpan(run.first, run.units);
    }
  }
  // A longer span takes the pages of a shorter one.
  void Move() {
    if (live_.empty()) return;
    const auto at = Pick();
    const Run old = at->second;
    if (old.slab) return;
    const Ace::Grant grant = ace_.GrantSpan(old.units + 1, kUnitBytes);
    if (grant.first == kNoUnit) return NoteRefusal(grant.refusal);
    const VmStatus status = ace_.MoveSpanTo(
        old.first, ace_.region().coarse().UnitAddress(grant.first),
        old.units * kUnitBytes);
    if (!status.ok()) {
      EXPECT_PRED3(HasContent, at->first, old.units * kUnitBytes, old.seed);
      ace_.ReleaseSpan(grant.first, old.units + 1);
      return;
    }
    const Run run = {false, false, grant.first, old.units + 1, old.seed};
    EXPECT_PRED3(HasContent, AddressOf(run), old.units * kUnitBytes, old.seed);
    live_.erase(at);
    ace_.ReleaseSpan(old.first, old.units, /*dirty=*/false);
    Add(run, false);
  }

  FakeVirtualMemory memory_;
  WholeAce ace_{memory_};
  std::mt19937_64 random_;
  std::map<Address, Run> live_;
  int known_zero_ = 0;
  int refused_ = 0;
};

TEST_P(AceModelTest, NeverOverlapsAndTellsTheTruthAboutZero) {
  for (int step = 0; step < 4000 && !HasFatalFailure(); ++step) {
    memory_.AdvanceMs(Below(10));
    memory_.RefuseNothing();
    if (Below(10) == 0) {
      memory_.RefuseCall(1 + Below(4), Below(2) == 0 ? ENOMEM : EAGAIN);
    }
    switch (Below(10)) {
      case 0:
      case 1:
      case 2:
        GrantSlab();
        break;
      case 3:
      case 4:
        GrantSpan();
        break;
      case 5:
        if (Below(10) == 0) ace_.PurgeAll();
        ace_.TrimIfDue();
        break;
      case 6:
        Move();
        break;
      default:
        Release();
        break;
    }
    ace_.CheckInvariants();
  }
  EXPECT_GT(known_zero_, 100);
  EXPECT_GT(refused_, 10);
  while (!live_.empty()) Release();
  ace_.PurgeAll();
  memory_.RefuseNothing();
  ace_.PurgeAll();
  EXPECT_EQ(ace_.Snapshot().granted_bytes, 0U);
  ace_.CheckInvariants();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AceModelTest, testing::Values(1U, 2U, 3U));

}  // namespace
}  // namespace hakmem
