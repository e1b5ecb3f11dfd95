// One event for each call that is refused, whatever is tried inside it: its
// disposition, its limit, what it says of the call.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/live_count.h"
#include "allocator/core/recovery.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_events.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/process.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorEventsTest, Variants);

TYPED_TEST(AllocatorEventsTest, SaysWhatWasAskedFor) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  ASSERT_NE(allocator.Allocate(self, 100), nullptr);
  void* block = allocator.Allocate(self, 70'000);
  this->RefuseAll(EPERM);
  const auto expect = [this](const void* got, Call call, std::size_t size,
                             std::size_t alignment, std::size_t count,
                             Route route, std::size_t class_bytes) {
    EXPECT_EQ(got, nullptr);
    const FailureEvent event = this->TakeEvent();
    EXPECT_STREQ(CallName(event.call), CallName(call));
    EXPECT_EQ(event.size_bytes, size);
    EXPECT_EQ(event.alignment_bytes, alignment);
    EXPECT_EQ(event.count, count);
    EXPECT_STREQ(RouteName(event.route), RouteName(route));
    EXPECT_EQ(event.class_bytes, class_bytes);
    EXPECT_EQ(event.attempts, 2u);
  };
  expect(allocator.Allocate(self, 50 * kMiB), Call::kMalloc, 50 * kMiB, 16, 0,
         Route::kSpan, 0);
  expect(allocator.Allocate(self, 300 * kMiB), Call::kMalloc, 300 * kMiB, 16, 0,
         Route::kHuge, 0);
  expect(allocator.AllocateZeroed(self, 7, 10 * kMiB), Call::kCalloc, 10 * kMiB,
         16, 7, Route::kSpan, 0);
  expect(allocator.AllocateAligned(self, 64 * kMiB, 5), Call::kAlignedAlloc, 5,
         64 * kMiB, 0, Route::kSpan, 0);
  expect(allocator.AllocateAligned(self, kGiB, 5), Call::kAlignedAlloc, 5, kGiB,
         0, Route::kHuge, 0);
  expect(allocator.Reallocate(self, block, 60 * kMiB), Call::kRealloc,
         60 * kMiB, 16, 0, Route::kSpan, 0);
  // Every class, until its memory is used up.
  for (const std::size_t size : {std::size_t{1000}, std::size_t{40'000}}) {
    while (allocator.Allocate(self, size) != nullptr) {
    }
    const bool tiny = size <= kMaxTinyBytes;
    expect(nullptr, Call::kMalloc, size, 16, 0,
           tiny ? Route::kTiny : Route::kPool, tiny ? 1024 : 40'960);
    expect(allocator.AllocateZeroed(self, 5, size / 5), Call::kCalloc, size / 5,
           16, 5, tiny ? Route::kTiny : Route::kPool, tiny ? 1024 : 40'960);
  }
  EXPECT_EQ(allocator.upkeep().Snapshot().failures, this->taken_);
}

TYPED_TEST(AllocatorEventsTest, SaysWhoAndFromWhere) {
  ASSERT_EQ(this->allocator().Allocate(this->self(), ~std::size_t{0}), nullptr);
  const FailureEvent event = this->TakeEvent();
  EXPECT_EQ(event.process_id, ProcessId());
  EXPECT_EQ(event.thread_id, ThreadId());
  EXPECT_STRNE(event.thread_name, "");
  EXPECT_GT(event.time_ns, 0u);
  EXPECT_GT(event.monotonic_ns, 0u);
  EXPECT_GE(event.frame_count, 1u);
}

// A refused mapping is explained by the limit that was found, once per call.
TYPED_TEST(AllocatorEventsTest, NamesTheKernelsLimit) {
  // Afterwards the tables have room.
  ASSERT_NE(this->allocator().Allocate(this->self(), 300 * kMiB), nullptr);
  this->RefuseAll(ENOMEM);
  test_limits.Add("RLIMIT_DATA", "/proc/self/limits", 9 * kGiB, kGiB);
  test_limits.explaining =
      test_limits.Add("RLIMIT_AS", "/proc/self/limits", kGiB, kGiB - 5 * kMiB);
  test_limits.detail = FailureDetail::kRlimitAs;
  constexpr std::size_t kBytes =
      301 * kMiB - TestedAllocator<TypeParam::kConfig>::kSlackBytes;
  EXPECT_EQ(this->allocator().Allocate(this->self(), kBytes), nullptr);
  const FailureEvent event =
      this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kRlimitAs,
                        Disposition::kReturnedNull);
  EXPECT_EQ(event.error_number, ENOMEM);
  EXPECT_EQ(event.refused_call, VmCall::kMap);
  EXPECT_EQ(event.refused_bytes, 301 * kMiB);
  EXPECT_STREQ(event.limit_name, "RLIMIT_AS");
  EXPECT_STREQ(event.limit_source, "/proc/self/limits");
  EXPECT_EQ(event.limit_value, kGiB);
  EXPECT_EQ(event.limit_use, kGiB - 5 * kMiB);
  EXPECT_EQ(event.limit_needed, 301 * kMiB);
}

// What is free is unmapped for a call that the kernel refused, but not where
// the limit was lowered so far that none of it could be mapped again.
template <typename T>
class AllocatorLoweredLimitTest : public AllocatorEventsTest<T> {
 protected:
  void ExpectKeepsFreeMemory(std::uint64_t limit_bytes, bool keeps) {
    constexpr std::size_t kBytes = 20'000;
    auto& allocator = this->allocator();
    auto*& self = this->self();
    std::vector<void*> blocks(2000);
    for (void*& block : blocks) block = allocator.Allocate(self, kBytes);
    for (void* block : blocks) allocator.Free(self, block);
    test_limits.explaining =
        test_limits.Add("RLIMIT_DATA", "/proc/self/limits", limit_bytes, kGiB);
    test_limits.detail = FailureDetail::kRlimitData;
    this->memory().RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                              VmCall::kMap);
    EXPECT_EQ(allocator.Allocate(self, 301 * kMiB), nullptr);
    EXPECT_EQ(this->memory().calls(VmCall::kUnmap) == 0, keeps);
    EXPECT_EQ(allocator.Allocate(self, kBytes) != nullptr, keeps);
  }
};
TYPED_TEST_SUITE(AllocatorLoweredLimitTest, Variants);

TYPED_TEST(AllocatorLoweredLimitTest, KeepsWhatCouldNotBeMappedAgain) {
  this->ExpectKeepsFreeMemory(kMiB, true);
}
TYPED_TEST(AllocatorLoweredLimitTest, UnmapsWhatCouldBe) {
  this->ExpectKeepsFreeMemory(kGiB, false);
}

TYPED_TEST(AllocatorEventsTest, SaysWhenNoLimitExplains) {
  ASSERT_NE(this->allocator().Allocate(this->self(), 100), nullptr);
  this->RefuseAll(EAGAIN);
  EXPECT_EQ(this->allocator().Allocate(this->self(), 20 * kMiB), nullptr);
  const FailureEvent event =
      this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kUnknown,
                        Disposition::kReturnedNull);
  EXPECT_STREQ(event.limit_name, "");
  EXPECT_EQ(event.error_number, EAGAIN);
}

TYPED_TEST(AllocatorEventsTest, SaysWhenTheRefusalWasInjected) {
  RealTestAllocator<TypeParam::kConfig> real;
  auto& allocator = *real.allocator;
  auto* self = TestedAllocator<TypeParam::kConfig>::NoHeap();
  ASSERT_NE(allocator.Allocate(self, 100), nullptr);
  real.memory.FailNth(1, /*from_then_on=*/true);
  EXPECT_EQ(allocator.Allocate(self, 20 * kMiB), nullptr);
  real.memory.FailNth(0, false);
  ASSERT_EQ(this->events_.size(), 1u);
  EXPECT_EQ(this->events_[0].detail, FailureDetail::kInjected);
  EXPECT_EQ(this->events_[0].error_number, ENOMEM);
  EXPECT_STREQ(this->events_[0].limit_name, "");
  EXPECT_NE(allocator.Allocate(self, 20 * kMiB), nullptr);
}

// Something else lies where the next frames would: a span becomes a Huge block,
// and a Pool block cannot.
TYPED_TEST(AllocatorEventsTest, SaysWhenTheAddressesAreInUse) {
  if (kThreadSanitizer) GTEST_SKIP() << "has addresses there itself";
  auto& allocator = this->allocator();
  const Zone& zone = allocator.ace().region().coarse();
  void* first = allocator.Allocate(this->self(), 31 * kUnitBytes);
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(zone.Contains(reinterpret_cast<Address>(first)));
  const Address begin = zone.FrameAddress(zone.frame_count());
  const auto take_frames = [&](Address from, std::size_t bytes) {
    for (Address at = from; at < from + bytes; at += kSuperSlabBytes) {
      this->memory().MapAt(at, this->memory().PageBytes());
    }
  };
  // More than is stepped over.
  take_frames(begin, kGiB);
  for (Address at = begin + kGiB; at < begin + 1800 * kGiB; at += kGiB) {
    // Where something of hakmem's own lies, what is around it.
    if (!this->memory().MapAt(at, kGiB).ok()) take_frames(at, kGiB);
  }
  void* const span = allocator.Allocate(this->self(), 10 * kMiB);
  ASSERT_NE(span, nullptr);
  EXPECT_FALSE(zone.Contains(reinterpret_cast<Address>(span)));
  if (this->kDetours) {
    this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kAddressInUse,
                      Disposition::kServedByDetour);
  }
  EXPECT_EQ(allocator.Allocate(this->self(), 60'000), nullptr);
  const FailureEvent event =
      this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kAddressInUse,
                        Disposition::kReturnedNull);
  EXPECT_EQ(event.error_number, EEXIST);
}

TYPED_TEST(AllocatorEventsTest, NamesItsOwnLimits) {
  HeapOptions options;
  options.heap_limit_bytes = 5 * kMiB;
  options.max_alloc_bytes = 400 * kMiB;
  this->Start(options);
  auto& allocator = this->allocator();
  auto*& self = this->self();
  void* span = allocator.Allocate(self, 3 * kMiB);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(allocator.Allocate(self, 3 * kMiB), nullptr);
  FailureEvent event =
      this->ExpectEvent(FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                        Disposition::kReturnedNull);
  EXPECT_STREQ(event.limit_name, "HAKMEM_HEAP_LIMIT");
  EXPECT_STREQ(event.limit_source, "environment");
  EXPECT_EQ(event.limit_value, 5 * kMiB);
  // A guard page takes a unit more.
  const std::size_t more = TypeParam::kConfig.guard_pages ? kUnitBytes : 0;
  EXPECT_EQ(event.limit_use, 3 * kMiB + more);
  EXPECT_EQ(event.limit_needed, 3 * kMiB + more);
  EXPECT_EQ(event.memory.mapped, 4 * kMiB);
  EXPECT_EQ(event.memory.peak_mapped, 4 * kMiB);
  EXPECT_EQ(event.memory.granted, 3 * kMiB + more);
  EXPECT_EQ(event.memory.largest_free, 1 * kMiB - more);
  EXPECT_GT(event.memory.metadata, 0u);
  EXPECT_EQ(event.error_number, 0);
  EXPECT_EQ(allocator.Allocate(self, 401 * kMiB), nullptr);
  event = this->ExpectEvent(FailureReason::kThreshold, FailureDetail::kMaxAlloc,
                            Disposition::kReturnedNull);
  EXPECT_STREQ(event.limit_name, "HAKMEM_MAX_ALLOC");
  EXPECT_EQ(event.limit_value, 400 * kMiB);
  EXPECT_EQ(event.limit_needed, 401 * kMiB);
  // Free memory, but in pieces.
  std::vector<void*> units;
  while (void* unit = allocator.Allocate(self, 65'537)) units.push_back(unit);
  this->ExpectEvent(FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                    Disposition::kReturnedNull);
  ASSERT_GE(units.size(), 6u);
  for (std::size_t i = 0; i < units.size(); i += 2) {
    allocator.Free(self, units[i]);
  }
  EXPECT_NE(allocator.Allocate(self, 3 * 65'536), nullptr);
}

// What ACE keeps makes room for a call, and nobody hears of it. What a thread
// keeps does, too; one event says so.
TYPED_TEST(AllocatorEventsTest, GivesItsCachesBackBeforeItGivesUp) {
  HeapOptions options;
  options.heap_limit_bytes = 8 * kMiB;
  this->Start(options);
  auto& allocator = this->allocator();
  auto*& self = this->self();
  void* span = allocator.Allocate(self, 5 * kMiB);
  ASSERT_NE(span, nullptr);
  std::memset(span, 0xab, 5 * kMiB);
  allocator.Free(self, span);
  std::vector<void*> blocks;
  while (void* block = allocator.AllocateZeroed(self, 10, 100)) {
    ASSERT_TRUE(IsZeroWhole(block, 1000));
    std::memset(block, 0xcd, 1000);
    blocks.push_back(block);
  }
  EXPECT_GE(blocks.size() * 1000, 7 * kMiB);
  FailureEvent event =
      this->ExpectEvent(FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                        Disposition::kReturnedNull);
  EXPECT_LE(event.memory.granted + event.memory.cached, 8 * kMiB);
  for (void* block : blocks) allocator.Free(self, block);
  while (this->events_.empty()) {
    void* const block = allocator.AllocateZeroed(self, 20, 100);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(IsZeroWhole(block, 2000));
    std::memset(block, 0xef, 2000);
  }
  event =
      this->ExpectEvent(FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                        Disposition::kServedAfterPurge);
  EXPECT_EQ(event.attempts, 2u);
  EXPECT_EQ(allocator.upkeep().Snapshot().failures, 1u);
}

// The program's handler frees memory and asks for another try.
TYPED_TEST(AllocatorEventsTest, AsksTheProgramForMemory) {
  HeapOptions options;
  options.heap_limit_bytes = 6 * kMiB;
  this->Start(options);
  auto& allocator = this->allocator();
  auto*& self = this->self();
  void* held = allocator.Allocate(self, 5 * kMiB);
  ASSERT_NE(held, nullptr);
  int calls = 0;
  test_handler = [&](const FailureEvent& event) {
    ++calls;
    EXPECT_EQ(event.disposition, Disposition::kPending);
    EXPECT_EQ(event.detail, FailureDetail::kHeapLimit);
    // Whoever looks at the ring finds it.
    EXPECT_EQ(this->Newest().sequence, event.sequence);
    EXPECT_EQ(this->Newest().disposition, Disposition::kPending);
    if (calls == 3) allocator.Free(self, held);
    return true;
  };
  EXPECT_NE(allocator.Allocate(self, 5 * kMiB), nullptr);
  EXPECT_EQ(calls, 3);
  const FailureEvent event =
      this->ExpectEvent(FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                        Disposition::kServedAfterHandler);
  EXPECT_GE(event.attempts, 5u);
  EXPECT_EQ(allocator.upkeep().Snapshot().failures, 0u);
}

TYPED_TEST(AllocatorEventsTest, TheHandlerIsNotAskedForever) {
  HeapOptions options;
  options.heap_limit_bytes = 6 * kMiB;
  this->Start(options);
  int calls = 0;
  bool again = true;
  test_handler = [&](const FailureEvent&) {
    ++calls;
    return again;
  };
  EXPECT_EQ(this->allocator().Allocate(this->self(), 7 * kMiB), nullptr);
  EXPECT_EQ(calls, Recovery::kMaxHandlerRetries);
  this->ExpectEvent(FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                    Disposition::kReturnedNull);
  again = false;
  EXPECT_EQ(this->allocator().Allocate(this->self(), 7 * kMiB), nullptr);
  EXPECT_EQ(calls, Recovery::kMaxHandlerRetries + 1);
  EXPECT_EQ(this->TakeEvent().attempts, 2u);
}

TYPED_TEST(AllocatorEventsTest, TheHandlerIsAskedOnceWhereNoMemoryHelps) {
  HeapOptions options;
  options.max_alloc_bytes = 100 * kMiB;
  this->Start(options);
  int calls = 0;
  test_handler = [&](const FailureEvent& event) {
    EXPECT_EQ(event.reason, FailureReason::kThreshold);
    ++calls;
    return true;
  };
  auto& allocator = this->allocator();
  EXPECT_EQ(allocator.Allocate(this->self(), ~std::size_t{0}), nullptr);
  EXPECT_EQ(this->TakeEvent().attempts, 1U);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(allocator.AllocateZeroed(this->self(), ~std::size_t{0}, 2),
            nullptr);
  this->TakeEvent();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(allocator.Allocate(this->self(), 101 * kMiB), nullptr);
  EXPECT_EQ(this->TakeEvent().disposition, Disposition::kReturnedNull);
  EXPECT_EQ(calls, 3);
}

// Calls that fail inside the handler make events of their own.
TYPED_TEST(AllocatorEventsTest, CallsInsideTheHandlerHaveEventsOfTheirOwn) {
  ASSERT_NE(this->allocator().Allocate(this->self(), 100), nullptr);
  this->RefuseAll(ENOMEM);
  bool inside = false;
  test_handler = [&](const FailureEvent&) {
    if (inside) return false;
    inside = true;
    EXPECT_EQ(this->allocator().Allocate(this->self(), 30 * kMiB), nullptr);
    return false;
  };
  EXPECT_EQ(this->allocator().Allocate(this->self(), 20 * kMiB), nullptr);
  ASSERT_EQ(this->events_.size(), 2u);
  EXPECT_EQ(this->events_[0].size_bytes, 30 * kMiB);
  EXPECT_EQ(this->events_[0].sequence, 2u);
  EXPECT_EQ(this->events_[1].size_bytes, 20 * kMiB);
  EXPECT_EQ(this->events_[1].sequence, 1u);
  EXPECT_EQ(this->events_[1].disposition, Disposition::kReturnedNull);
}

// Headers know what is live, whatever caches hold.
TYPED_TEST(AllocatorEventsTest, CountsWhatTheProgramHolds) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(allocator.Allocate(self, 1000));
    ASSERT_NE(blocks.back(), nullptr);
  }
  while (blocks.size() > 10) {
    allocator.Free(self, blocks.back());
    blocks.pop_back();
  }
  ASSERT_NE(allocator.Allocate(self, 3 * kMiB), nullptr);
  ASSERT_NE(allocator.Allocate(self, 300 * kMiB), nullptr);
  const std::uint64_t held =
      CountLive(allocator.ace(), allocator.guards()).bytes;
  EXPECT_GE(held, 10 * 1000 + 303 * kMiB);
  EXPECT_LE(held, 10 * 1024 + 303 * kMiB + 2 * kSuperSlabBytes);
  EXPECT_EQ(allocator.Allocate(self, ~std::size_t{0}), nullptr);
  const FailureEvent first = this->TakeEvent();
  EXPECT_EQ(first.live_bytes, held);
  EXPECT_GE(first.memory.granted, held);
  // A storm does not count again.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(allocator.Allocate(self, ~std::size_t{0}), nullptr);
    const FailureEvent next = this->TakeEvent();
    if (next.monotonic_ns - first.monotonic_ns < Recovery::kCountIntervalNs) {
      EXPECT_EQ(next.live_bytes, kLiveNotCounted);
    }
  }
}

// As it was when the call was first refused: what is done for it comes later.
TYPED_TEST(AllocatorEventsTest, CountsBeforeTheProgramFreesMemory) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  void* held = allocator.Allocate(self, 5 * kMiB);
  ASSERT_NE(held, nullptr);
  this->RefuseAll(ENOMEM);
  test_handler = [&](const FailureEvent& event) {
    EXPECT_EQ(event.live_bytes,
              CountLive(allocator.ace(), allocator.guards()).bytes);
    allocator.Free(self, held);
    this->memory().RefuseNothing();
    return true;
  };
  EXPECT_NE(allocator.Allocate(self, 300 * kMiB), nullptr);
  const FailureEvent event = this->TakeEvent();
  EXPECT_EQ(event.disposition, Disposition::kServedAfterHandler);
  EXPECT_GE(event.live_bytes, 5 * kMiB);
  EXPECT_LE(event.live_bytes, 5 * kMiB + 2 * kUnitBytes);
}

TYPED_TEST(AllocatorEventsTest, DoesNotCountWhereItTakesLong) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  void* block = allocator.Allocate(self, Recovery::kMaxCountedBytes + 1);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(allocator.Allocate(self, ~std::size_t{0}), nullptr);
  const FailureEvent event = this->TakeEvent();
  EXPECT_GT(event.memory.granted, Recovery::kMaxCountedBytes);
  EXPECT_EQ(event.live_bytes, kLiveNotCounted);
  // That was no count: the next is not put off.
  allocator.Free(self, block);
  EXPECT_EQ(allocator.Allocate(self, ~std::size_t{0}), nullptr);
  EXPECT_EQ(this->TakeEvent().live_bytes, 0u);
}

using ReleaseEventsTest = AllocatorEventsTest<Variant<kRelease>>;

TEST_F(ReleaseEventsTest, CountsAgainAfterAWhile) {
  static std::uint64_t now_ns;
  now_ns = 1'000'000'000'000;
  std::construct_at(&test_reporter, test_line, &FindTestLimit,
                    [] { return now_ns; });
  const auto live_bytes = [this] {
    EXPECT_EQ(allocator().Allocate(self(), ~std::size_t{0}), nullptr);
    return TakeEvent().live_bytes;
  };
  EXPECT_EQ(live_bytes(), 0u);
  ASSERT_NE(allocator().Allocate(self(), 1024), nullptr);
  now_ns += Recovery::kCountIntervalNs - 1;
  EXPECT_EQ(live_bytes(), kLiveNotCounted);
  ++now_ns;
  EXPECT_EQ(live_bytes(), 1024u);
}

// In parts, as operator new does it.
TYPED_TEST(AllocatorEventsTest, CanBeResolvedInParts) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  ASSERT_NE(allocator.Allocate(self, 100), nullptr);
  this->RefuseAll(ENOMEM);
  const CallResult got = allocator.AllocateSlow(self, 20 * kMiB, 16);
  ASSERT_EQ(got.block, nullptr);
  FailedCall failed;
  EXPECT_EQ(
      allocator.Recover(
          self,
          {.call = Call::kNew, .size_bytes = 20 * kMiB, .alignment_bytes = 16},
          got, nullptr, failed),
      nullptr);
  this->ExpectNoEvent();
  allocator.recovery().Announce(failed);
  allocator.recovery().Announce(failed);
  EXPECT_EQ(this->test_->failures(), 1u);
  EXPECT_EQ(allocator.TryAgain(self, failed), nullptr);
  this->memory().RefuseNothing();
  EXPECT_NE(allocator.TryAgain(self, failed), nullptr);
  allocator.recovery().Finish(failed, Disposition::kServedAfterNewHandler);
  const FailureEvent event =
      this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kUnknown,
                        Disposition::kServedAfterNewHandler);
  EXPECT_EQ(event.call, Call::kNew);
  EXPECT_EQ(event.attempts, 5u);
}

}  // namespace
}  // namespace hakmem
