// Ace lets go of its lock while the kernel works for long, and nobody can have
// what the kernel works on.

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/test_waits.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr Config kSeparate = {
    .name = "separate", .separate_classes = true, .guard_pages = true};
constexpr std::uint32_t kLongUnits = 4 * kUnitsPerSuperSlab;
constexpr std::size_t kHugeBytes = 300 * kMiB;
// That unmap so much: the slices before the last one go back by themselves.
constexpr int kHugeCalls = 10;

class AceUnlockedTest : public testing::Test {
 protected:
  ~AceUnlockedTest() override {
    memory_.WatchLongCalls(nullptr);
    ace_->CheckInvariants();
  }
  void Start(std::uint64_t decay_ms = 500, const Config& config = kRelease,
             std::size_t heap_limit_bytes = ~std::size_t{0}) {
    Options options;
    options.decay_ms = decay_ms;
    options.heap_limit_bytes = heap_limit_bytes;
    ace_->Start(options, config);
  }
  // From now on, the lock must be free in calls longer than a SuperSlab; then
  // `meanwhile` runs.
  template <typename Meanwhile>
  void Watch(Meanwhile meanwhile) {
    memory_.WatchLongCalls(
        [this, meanwhile](VmCall, Address address, std::size_t bytes) {
          if (bytes <= kSuperSlabBytes) return;
          ++long_calls_;
          ASSERT_FALSE(ace_->IsLockHeld());
          meanwhile(address, bytes);
        });
  }
  void Watch() {
    Watch([](Address, std::size_t) {});
  }
  Address AddressOf(UnitIndex unit) {
    return ace_->region().coarse().UnitAddress(unit);
  }
  UnitIndex Span(std::uint32_t units) {
    const UnitIndex span = ace_->GrantSpan(units, kUnitBytes).first;
    FillContent(AddressOf(span), kUnitBytes, 1);
    return span;
  }
  // Another thread releases a span when it gets the lock after the first frame
  // was unmapped, if it gets it.
  void ReleaseWhileUnmapping(UnitIndex span, std::uint32_t units) {
    const SizeClass tiny = ClassOf(64);
    ace_->ReleaseSlab(IsTiny(tiny), SlabRange(tiny),
                      ace_->GrantSlab(IsTiny(tiny), SlabRange(tiny)).first);
    std::optional<TestThread> other;
    memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
      if (other) return;
      other.emplace([&, span, units] {
        FutexLock::Identify();
        ace_->ReleaseSpan(span, units);
      });
      other->AwaitWaitFor(*ace_);
    });
    ace_->UnmapCaches();
    other->Join();
    memory_.WatchLongCalls(nullptr);
  }
  // As the hooks of fork do it.
  pid_t Fork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    ace_->LockForFork();
    const pid_t child = fork();
    child == 0 ? ace_->ResetLockAfterFork() : ace_->UnlockAfterFork();
    return child;
  }
  static bool Overlap(Address a, std::size_t a_bytes, Address b,
                      std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
  int long_calls_ = 0;
};

TEST_F(AceUnlockedTest, AHugeBlockIsUnmapped) {
  Start();
  const Address block = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  Watch([&](Address address, std::size_t bytes) {
    // It is freed for everybody, and its place is nobody else's yet.
    EXPECT_TRUE(Overlap(address, bytes, block, kHugeBytes));
    EXPECT_FALSE(ReleaseLive(*ace_, block));
    EXPECT_EQ(ace_->huge().BytesOf(block), 0U);
    EXPECT_NE(ace_->NextHuge(block - 1), block);
    EXPECT_FALSE(ace_->huge().Find(block + 1).live);
    const Address other = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
    ASSERT_NE(other, 0U);
    EXPECT_FALSE(Overlap(block, kHugeBytes, other, kHugeBytes));
    ace_->CheckInvariants();
  });
  EXPECT_TRUE(ReleaseLive(*ace_, block));
  EXPECT_EQ(long_calls_, kHugeCalls);
  EXPECT_EQ(ace_->mapped_bytes(), kHugeCalls * kHugeBytes);
}

TEST_F(AceUnlockedTest, AHugeBlockIsResized) {
  Start();
  const Address block = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  ASSERT_NE(ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address, 0U);
  FillContent(block, 8 * kContentStrideBytes, 7);
  Address resized = block;
  Watch([&](Address, std::size_t) {
    EXPECT_FALSE(ReleaseLive(*ace_, resized));
    EXPECT_NE(ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address, 0U);
    ace_->CheckInvariants();
  });
  const Address moved = ResizeLive(*ace_, block, 2 * kHugeBytes).address;
  EXPECT_NE(moved, block);
  resized = moved;
  EXPECT_EQ(long_calls_, 1);
  EXPECT_PRED3(HasContent, moved, 8 * kContentStrideBytes, 7);
  EXPECT_EQ(ResizeLive(*ace_, moved, kHugeBytes).address, moved);
  EXPECT_EQ(long_calls_, 1 + kHugeCalls);
  EXPECT_EQ(ace_->huge().BytesOf(moved), kHugeBytes);
  EXPECT_EQ(ace_->mapped_bytes(), (3 + kHugeCalls) * kHugeBytes);
}

TEST_F(AceUnlockedTest, ALimitHoldsWhileABlockMoves) {
  Start(500, kRelease, 3 * kHugeBytes);
  const Address block = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  ASSERT_NE(ace_->GrantHuge(kMiB, kSuperSlabBytes).address, 0U);
  Watch([&](Address, std::size_t) {
    EXPECT_EQ(ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address, 0U);
    ace_->CheckInvariants();
  });
  EXPECT_NE(ResizeLive(*ace_, block, 2 * kHugeBytes).address, 0U);
  EXPECT_EQ(long_calls_, 1);
}

TEST_F(AceUnlockedTest, ASpanIsMoved) {
  Start();
  const UnitIndex from = Span(kLongUnits);
  const UnitIndex to = Span(kLongUnits);
  Watch();
  EXPECT_TRUE(ace_->MoveSpanTo(from, ace_->region().coarse().UnitAddress(to),
                               kLongUnits * kUnitBytes)
                  .ok());
  EXPECT_EQ(long_calls_, 1);
}

TEST_F(AceUnlockedTest, WhatIsPurgedIsNobodys) {
  for (const Config* config : {&kRelease, &kSeparate}) {
    for (const std::uint64_t decay_ms : {0, 500}) {
      ranges_ = {};
      ace_ = std::make_unique<WholeAce>(memory_, &ranges_);
      Start(decay_ms, *config);
      const UnitIndex span = Span(kLongUnits);
      Watch([&](Address address, std::size_t bytes) {
        const UnitIndex other = ace_->GrantSpan(kLongUnits, kUnitBytes).first;
        ASSERT_NE(other, kNoUnit);
        EXPECT_FALSE(
            Overlap(address, bytes, AddressOf(other), kLongUnits * kUnitBytes));
        ace_->CheckInvariants();
      });
      ace_->ReleaseSpan(span, kLongUnits);
      EXPECT_EQ(long_calls_, decay_ms == 0 ? 1 : 0);
      ace_->PurgeAll();
      EXPECT_EQ(long_calls_, 1);
      memory_.WatchLongCalls(nullptr);
      // Then it is to be had again, and known to be zero.
      const Ace::Grant grant = ace_->GrantSpan(kLongUnits, kUnitBytes);
      EXPECT_EQ(grant.first, span);
      EXPECT_TRUE(grant.known_zero);
      ace_->CheckInvariants();
      long_calls_ = 0;
    }
  }
}

// Where a limit leaves nothing else, a grant waits for what is being purged.
TEST_F(AceUnlockedTest, AGrantAtTheLimitWaitsForAPurge) {
  Start(500);
  const UnitIndex span = Span(kLongUnits);
  memory_.LimitBytes(memory_.mapped_bytes());
  ace_->ReleaseSpan(span, kLongUnits);
  std::optional<TestThread> other;
  Watch([&](Address, std::size_t) {
    other.emplace([&] {
      EXPECT_EQ(ace_->GrantSpan(kLongUnits, kUnitBytes).first, span);
    });
    other->AwaitSleepIn(SYS_futex);
  });
  ace_->PurgeAll();
  other->Join();
  EXPECT_EQ(long_calls_, 1);
}

// Another range of the same class serves, in the order of the list.
TEST_F(AceUnlockedTest, AGrantPassesRangesThatAreBeingPurged) {
  Start(500, kSeparate);
  const UnitIndex clean[] = {Span(kLongUnits), Span(kLongUnits)};
  const UnitIndex dirty = Span(kLongUnits);
  for (const UnitIndex span : clean) ace_->ReleaseSpan(span, kLongUnits);
  ace_->PurgeAll();
  ace_->ReleaseSpan(dirty, kLongUnits);
  Watch([&](Address address, std::size_t) {
    EXPECT_EQ(address, AddressOf(dirty));
    EXPECT_EQ(Span(kLongUnits), clean[1]);
    ace_->CheckInvariants();
  });
  ace_->PurgeAll();
  EXPECT_EQ(long_calls_, 1);
  EXPECT_EQ(Span(kLongUnits), dirty);
  EXPECT_EQ(Span(kLongUnits), clean[0]);
}

// A grant waits for a range of its class that is being purged: carving one
// instead, which stays, would add one for each purge.
TEST_F(AceUnlockedTest, PurgesDoNotAddRanges) {
  constexpr unsigned kRounds = 20;
  Start(500, kSeparate);
  const auto take = [&] { return ace_->GrantSpan(1, kUnitBytes).first; };
  std::set<UnitIndex> spans = {take()};
  // The clock stands still: a grant waits for as long as a purge takes.
  for (unsigned round = 0; round < kRounds; ++round) {
    for (const UnitIndex span : spans) ace_->ReleaseSpan(span, 1);
    UnitIndex granted = kNoUnit;
    std::optional<TestThread> other;
    memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
      if (other) return;
      other.emplace([&] { granted = take(); });
      other->AwaitSleepIn(SYS_futex);
    });
    ace_->PurgeAll();
    other->Join();
    ASSERT_NE(granted, kNoUnit);
    spans.insert(granted);
    for (std::size_t taken = 1; taken < spans.size(); ++taken) take();
  }
  EXPECT_EQ(spans.size(), 1U);
}

TEST_F(AceUnlockedTest, AGrantDoesNotWaitForAPurgeForEver) {
  Start(500, kSeparate);
  const UnitIndex span = ace_->GrantSpan(1, kUnitBytes).first;
  ace_->ReleaseSpan(span, 1);
  UnitIndex granted = kNoUnit;
  bool began = false;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (std::exchange(began, true)) return;
    TestThread other([&] { granted = ace_->GrantSpan(1, kUnitBytes).first; });
    other.AwaitSleepIn(SYS_futex);
    memory_.AdvanceMs(5);
    other.Join();
  });
  ace_->PurgeAll();
  EXPECT_NE(granted, kNoUnit);
  EXPECT_NE(granted, span);
}

// Under pressure, a frame may be unmapped of which a span rests, and something
// else may take its place: neither that one nor its neighbour is used again.
TEST_F(AceUnlockedTest, WhatOthersHaveTakenRestsNoMore) {
  constexpr std::uint32_t kUnits = kUnitsPerSuperSlab / 2;
  constexpr Config kDelayed = {
      .name = "delayed", .delay_reuse = true, .separate_classes = true};
  Start(500, kDelayed);
  ASSERT_NE(Span(32 * kUnits), kNoUnit);
  UnitIndex listed = Span(kUnits);
  UnitIndex resting = Span(kUnits);
  ASSERT_EQ(FrameOfUnit(listed), FrameOfUnit(resting + kUnits - 1));
  ASSERT_EQ(FrameOfUnit(resting), FrameOfUnit(listed + kUnits - 1));
  for (;;) {
    ace_->ReleaseSpan(listed, kUnits);
    ReleaseWhileUnmapping(resting, kUnits);
    if (!memory_.IsMapped(AddressOf(resting), memory_.PageBytes())) break;
    // The other thread came too late; all is as it was.
    ace_->UnmapCaches();
    listed = Span(kUnits);
    resting = Span(kUnits);
  }
  ASSERT_TRUE(memory_.MapAt(AddressOf(resting), memory_.PageBytes()).ok());
  // None rests.
  ace_->UnmapCaches();
  std::set<UnitIndex> spans;
  for (int i = 0; i < 4; ++i) spans.insert(Span(kUnits));
  EXPECT_FALSE(spans.contains(listed));
  EXPECT_FALSE(spans.contains(resting));
  EXPECT_FALSE(spans.contains(kNoUnit));
}

// In a child, what another thread was purging is free memory that may hold
// data.
TEST_F(AceUnlockedTest, AForkEndsPurges) {
  for (const Config* config : {&kRelease, &kSeparate}) {
    ranges_ = {};
    ace_ = std::make_unique<WholeAce>(memory_, &ranges_);
    Start(500, *config);
    ace_->ReleaseSpan(Span(kLongUnits), kLongUnits);
    Watch([&](Address, std::size_t) {
      std::thread([&] {
        FutexLock::Identify();
        const pid_t child = Fork();
        if (child == 0) {
          memory_.WatchLongCalls(nullptr);
          ace_->CheckInvariants();
          const Ace::Grant grant = ace_->GrantSpan(kLongUnits, kUnitBytes);
          _exit(grant.first == 0 && !grant.known_zero ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
      }).join();
    });
    ace_->PurgeAll();
    memory_.WatchLongCalls(nullptr);
    ace_->CheckInvariants();
  }
  EXPECT_EQ(long_calls_, 2);
}

// A child has what another thread was granted, and it is open, when what the
// grant gives back lets the fork in.
TEST_F(AceUnlockedTest, AForkFindsWhatIsGrantedOpen) {
  constexpr Config kClosed = {.name = "closed",
                              .separate_classes = true,
                              .guard_pages = true,
                              .closed_until_granted = true};
  Start(500, kClosed);
  constexpr std::uint32_t kDirtyUnits = 32 * kUnitsPerSuperSlab;
  ace_->ReleaseSpan(Span(kDirtyUnits), kDirtyUnits);
  int purges = 0;
  memory_.WatchLongCalls([&](VmCall, Address address, std::size_t) {
    // What the tables have goes under the lock.
    if (!ace_->region().coarse().Contains(address)) return;
    ++purges;
    std::thread([&] {
      FutexLock::Identify();
      const pid_t child = Fork();
      if (child == 0) {
        ace_->CheckInvariants();
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }).join();
  });
  // Of one class after another: none is there that was granted before.
  for (std::uint32_t units = 1; units < 2 * kUnitsPerSuperSlab; ++units) {
    ASSERT_NE(ace_->GrantSpan(units, kUnitBytes).first, kNoUnit);
  }
  EXPECT_GT(purges, 0);
}

// A signal handler that forks goes back to what it interrupted.
TEST_F(AceUnlockedTest, AForkLeavesItsOwnThreadsPurgeAlone) {
  FutexLock::Identify();
  Start();
  ace_->ReleaseSpan(Span(kLongUnits), kLongUnits);
  pid_t child = -1;
  Watch([&](Address, std::size_t) {
    child = Fork();
    if (child == 0) {
      ace_->CheckInvariants();
      EXPECT_NE(ace_->GrantSpan(kLongUnits, kUnitBytes).first, 0U);
    }
  });
  ace_->PurgeAll();
  memory_.WatchLongCalls(nullptr);
  ace_->CheckInvariants();
  const Ace::Grant grant = ace_->GrantSpan(kLongUnits, kUnitBytes);
  EXPECT_EQ(grant.first, 0U);
  EXPECT_TRUE(grant.known_zero);
  if (child == 0) _exit(HasFailure() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Nor does the child's handler end it, which forks again before it returns, or
// that of a thread that has had no name before.
TEST_F(AceUnlockedTest, ForksWithinAForkLeaveTheirOwnThreadsPurgeAlone) {
  Start();
  ace_->ReleaseSpan(Span(kLongUnits), kLongUnits);
  const pid_t parent = getpid();
  pid_t child = -1;
  std::thread([&] {
    Watch([&](Address, std::size_t) {
      child = Fork();
      if (child == 0) child = Fork();
    });
    ace_->PurgeAll();
    memory_.WatchLongCalls(nullptr);
    ace_->CheckInvariants();
    EXPECT_TRUE(ace_->GrantSpan(kLongUnits, kUnitBytes).known_zero);
    int status = 0;
    if (child != 0) {
      EXPECT_EQ(waitpid(child, &status, 0), child);
    }
    EXPECT_EQ(status, 0);
    if (getpid() != parent) _exit(HasFailure() ? 1 : 0);
  }).join();
}

// In a child, a Huge block that another thread was unmapping is unmapped.
TEST_F(AceUnlockedTest, AForkEndsTheReleasesOfHugeBlocks) {
  Start();
  const Address block = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  const Address next = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  Watch([&](Address, std::size_t) {
    if (long_calls_ != 1) return;
    std::thread([&] {
      const pid_t child = Fork();
      if (child == 0) {
        EXPECT_FALSE(memory_.IsMapped(block, kUnitBytes));
        EXPECT_EQ(ace_->mapped_bytes(), kHugeBytes);
        ace_->CheckInvariants();
        EXPECT_EQ(ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address, block);
        EXPECT_TRUE(ReleaseLive(*ace_, next));
        _exit(HasFailure() ? 1 : 0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }).join();
  });
  EXPECT_TRUE(ReleaseLive(*ace_, block));
  EXPECT_NE(long_calls_, 0);
  EXPECT_EQ(ace_->mapped_bytes(), kHugeBytes);
}

// A signal handler that forks goes back to what it interrupted.
TEST_F(AceUnlockedTest, AForkLeavesItsOwnThreadsReleaseAlone) {
  Start();
  const Address block = ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  pid_t child = -1;
  Watch([&](Address, std::size_t) {
    if (child != -1) return;
    child = Fork();
    EXPECT_TRUE(memory_.IsMapped(block, kUnitBytes));
    EXPECT_NE(ace_->GrantHuge(kHugeBytes, kSuperSlabBytes).address, block);
  });
  EXPECT_TRUE(ReleaseLive(*ace_, block));
  memory_.WatchLongCalls(nullptr);
  ace_->CheckInvariants();
  EXPECT_EQ(ace_->mapped_bytes(), kHugeBytes);
  if (child == 0) _exit(HasFailure() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hakmem
