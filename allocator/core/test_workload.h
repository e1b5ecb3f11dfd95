// A workload over every entry point and route, checked against a model; its
// choices come from a seed or from a fuzzer's bytes.
//
// Owns: the model and the threads' heap pointers. Called by: tests of core,
// fuzzers.
// Thread-safety: none; "threads" are heap pointers used in turn.
//
// Every call that returns null must have left exactly one event, every other
// none, except a shrink that is served in place.
#ifndef HAKMEM_ALLOCATOR_CORE_TEST_WORKLOAD_H_
#define HAKMEM_ALLOCATOR_CORE_TEST_WORKLOAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include "allocator/ace/ace.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/failures/failure_ring.h"

namespace hakmem {

class SeededChoices {
 public:
  explicit SeededChoices(std::uint64_t seed) : random_(seed) {}
  std::size_t Below(std::size_t limit) { return random_() % limit; }

 private:
  std::mt19937_64 random_;
};

template <const Config& kConfig, typename Choices = SeededChoices>
class TestWorkload {
 public:
  using Heap = typename TestedAllocator<kConfig>::Heap;

  explicit TestWorkload(TestAllocator<kConfig>& test,
                        Choices choices = SeededChoices(1))
      : test_(test), allocator_(*test.allocator), choices_(choices) {
    for (Heap*& thread : threads_) thread = test.NewThread();
  }

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) Step();
    model_.CheckAll();
  }
  void Step();
  // Frees everything and ends all threads; nothing may be left in use.
  void Finish() {
    while (!model_.empty()) Free();
    for (Heap*& thread : threads_) allocator_.Detach(thread);
    Heap* last = test_.NewThread();
    allocator_.upkeep().Purge(last);
    HAK_CHECK_EQ(allocator_.upkeep().Snapshot().granted_bytes, 0U);
  }
  // One block by each route; all must be served.
  void ServeEveryRoute() {
    for (const std::size_t size :
         {std::size_t{50}, std::size_t{20'000}, 3 * kMiB, kMaxSpanBytes + 1}) {
      HAK_CHECK(Allocate(size));
      HAK_CHECK(AllocateZeroed(size));
      HAK_CHECK(AllocateAligned(size, 128 * kKiB));
    }
  }

  std::uint64_t nulls() const { return nulls_; }

 private:
  static constexpr int kThreads = 3;
  static constexpr std::size_t kMaxLiveBytes = 24 * kMiB;

  std::size_t Below(std::size_t limit) { return choices_.Below(limit); }
  void* Pick() { return model_.Pick(Below(model_.count())); }
  Heap*& self() { return threads_[Below(kThreads)]; }

  std::size_t RandomSize() {
    switch (Below(24)) {
      case 0:
        return kMaxSpanBytes + 1 + Below(8 * kMiB);
      case 1:
      case 2:
        return 2 * kMiB + Below(kMiB);
      case 3:
      case 4:
      case 5:
        return kMaxPoolBytes + Below(kMiB);
      default:
        return Below(2) == 0 ? Below(1100) : Below(kMaxPoolBytes + 1);
    }
  }

  // After a call that may fail: whether it served, and that events agree.
  bool Served(const void* block, std::uint64_t failures_before) {
    const std::uint64_t events = test_.failures() - failures_before;
    HAK_CHECK_LE(events, 1U);
    HAK_CHECK(block != nullptr || events == 1);
    if (events == 1) CheckEvent(block != nullptr);
    if (block == nullptr) ++nulls_;
    return block != nullptr;
  }
  void CheckEvent(bool served) {
    const FailureEvent event = test_.LastFailure();
    HAK_CHECK(event.detail != FailureDetail::kNone);
    if (!served) {
      HAK_CHECK(event.disposition == Disposition::kReturnedNull);
    } else if (event.disposition == Disposition::kServedByDetour) {
      HAK_CHECK(kConfig.report_detours);
    } else {
      HAK_CHECK(event.disposition == Disposition::kServedAfterPurge);
    }
    switch (event.reason) {
      case FailureReason::kMapFail:
        HAK_CHECK_NE(event.error_number, 0);
        HAK_CHECK(event.detail == FailureDetail::kUnknown ||
                  event.detail == FailureDetail::kAddressInUse);
        break;
      case FailureReason::kExhaustion:
        HAK_CHECK(event.detail == FailureDetail::kHeapLimit ||
                  event.detail == FailureDetail::kRegion);
        break;
      default:
        HAK_CHECK(false);
    }
  }
  void Add(Heap*& thread, void* block, std::size_t size,
           std::size_t alignment) {
    model_.Add(block, size, alignment, allocator_.UsableSize(thread, block));
  }

  bool Allocate(std::size_t size) {
    Heap*& thread = self();
    const std::uint64_t before = test_.failures();
    void* block = allocator_.Allocate(thread, size);
    if (!Served(block, before)) return false;
    Add(thread, block, size, kMinAlignmentBytes);
    return true;
  }
  bool AllocateZeroed(std::size_t size) {
    Heap*& thread = self();
    const std::uint64_t before = test_.failures();
    void* block = allocator_.AllocateZeroed(thread, 1, size);
    if (!Served(block, before)) return false;
    ModelHeap::CheckZero(block, size);
    Add(thread, block, size, kMinAlignmentBytes);
    return true;
  }
  bool AllocateAligned(std::size_t size, std::size_t alignment) {
    Heap*& thread = self();
    const std::uint64_t before = test_.failures();
    void* block = allocator_.AllocateAligned(thread, alignment, size);
    if (!Served(block, before)) return false;
    Add(thread, block, size, alignment);
    return true;
  }
  void Reallocate(std::size_t size) {
    size = std::max<std::size_t>(size, 1);  // a realloc to 0 bytes frees
    Heap*& thread = self();
    void* block = Pick();
    const std::size_t usable = model_.At(block).usable;
    const std::uint64_t before = test_.failures();
    void* moved = allocator_.Reallocate(thread, block, size);
    if (moved == block && size <= usable) {
      HAK_CHECK_LE(test_.failures() - before, 1U);
    } else if (!Served(moved, before)) {
      return;
    }
    model_.Resize(block, moved, size, allocator_.UsableSize(thread, moved));
  }
  void Free() {
    void* block = Pick();
    const ModelHeap::Block facts = model_.At(block);
    model_.Remove(block);
    const std::uint64_t before = test_.failures();
    if (Below(3) == 0) {
      allocator_.FreeSized(self(), block, facts.size, facts.alignment);
    } else {
      allocator_.Free(self(), block);
    }
    HAK_CHECK_EQ(test_.failures(), before);
  }
  void EndThread() {
    Heap*& thread = self();
    allocator_.Detach(thread);
    // It may go on without a heap for a while.
    if (Below(2) == 0) thread = test_.NewThread();
  }

  TestAllocator<kConfig>& test_;
  TestedAllocator<kConfig>& allocator_;
  Choices choices_;
  Heap* threads_[kThreads];
  ModelHeap model_;
  std::uint64_t nulls_ = 0;
};

template <const Config& kConfig, typename Choices>
void TestWorkload<kConfig, Choices>::Step() {
  test_.memory.AdvanceMs(Below(100));
  const bool full = model_.live_bytes() > kMaxLiveBytes;
  const std::size_t what = full ? 60 + Below(40) : Below(100);
  if (what < 30) {
    Allocate(RandomSize());
  } else if (what < 42) {
    AllocateZeroed(RandomSize());
  } else if (what < 52) {
    AllocateAligned(RandomSize(), std::size_t{1} << Below(23));
  } else if (what < 96) {
    if (model_.empty()) return;
    what < 68 && !full ? Reallocate(RandomSize()) : Free();
  } else if (what < 98) {
    allocator_.upkeep().Purge(self());
  } else {
    EndThread();
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_TEST_WORKLOAD_H_
