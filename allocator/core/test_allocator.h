// An allocator for tests: on a fake kernel, with heap pointers that stand for
// threads.
//
// Owns: all of it. Called by: tests of core, fuzzers. Thread-safety: as
// Allocator; one TestAllocator at a time.
#ifndef HAKMEM_ALLOCATOR_CORE_TEST_ALLOCATOR_H_
#define HAKMEM_ALLOCATOR_CORE_TEST_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/test_variant.h"
#include "allocator/core/allocator.h"
#include "allocator/core/allocator_hot.h"  // IWYU pragma: export
#include "allocator/core/allocator_parts.h"
#include "allocator/core/call_result.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/failure_reporter.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/failures/limit_finder.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// The allocator with whole calls, put together from their parts as frontend
// does it. Null: memory could not be had, and an event says why.
template <const Config& kConfig>
class TestedAllocator : public WholeAllocator<kConfig> {
 public:
  using Base = WholeAllocator<kConfig>;
  using Base::Base;
  using typename Base::Heap;

  void* Allocate(Heap*& self, std::size_t size_bytes);
  // The block, or null for good.
  void* Resolve(Heap*& self, const Request& request, const CallResult& got,
                const void* frame = nullptr);
  // Zeroed; null also when the product overflows.
  void* AllocateZeroed(Heap*& self, std::size_t count, std::size_t size_bytes);
  // Aligned to `alignment_bytes`, a power of two.
  void* AllocateAligned(Heap*& self, std::size_t alignment_bytes,
                        std::size_t size_bytes);
  // A block of a kind, and, where types are separate, of a token's partition;
  // if there is none to be had, one without a token. Of kMalloc if `zeroed`.
  void* AllocateWithToken(Heap*& self, std::uint64_t token,
                          std::size_t alignment_bytes, std::size_t size_bytes,
                          BlockKind kind = BlockKind::kMalloc,
                          bool zeroed = false);
  // Changes a block's size; size 0 counts as 1. Null: the block is as it was.
  // After a misuse there is no event.
  void* Reallocate(Heap*& self, void* pointer, std::size_t size_bytes);
  // As Free; a size or alignment that the block cannot have been asked for
  // with is a misuse, too.
  void FreeSized(Heap*& self, void* pointer, std::size_t size_bytes,
                 std::size_t alignment_bytes,
                 BlockKind kind = BlockKind::kMalloc);
};

// Compiled once, in test_allocator.cc, and not again in each test.
extern template class Allocator<kRelease>;
extern template class Allocator<kTracing>;
extern template class Allocator<kHardened>;
extern template class Allocator<kDebug>;
extern template class TestedAllocator<kRelease>;
extern template class TestedAllocator<kTracing>;
extern template class TestedAllocator<kHardened>;
extern template class TestedAllocator<kDebug>;

// Options that the next TestAllocator starts with.
inline HeapOptions test_options;
// The reason that is found for a refused mapping.
inline LimitReport test_limits;
inline void FindTestLimit(std::size_t needed_bytes, int /*error_number*/,
                          LimitReport& report) {
  report = test_limits;
  report.needed = needed_bytes;
}
inline constinit TraceLine test_line;
inline constinit FailureReporter test_reporter{test_line, &FindTestLimit};
inline constinit FailureRing test_failures;
// The program's handler of failed calls; null: it has none.
inline std::function<bool(const FailureEvent&)> test_handler;
// Whoever wants to see each event.
inline std::function<void(const FailureEvent&)> test_listener;
inline constexpr Host kTestHost = {
    .options = []() -> const HeapOptions& { return test_options; },
    .on_attach = [] {},
    .reporter = &test_reporter,
    .failures = &test_failures,
    .ask_for_memory =
        [](const FailureEvent& event) {
          return test_handler != nullptr && test_handler(event);
        },
    .on_failure =
        [](const FailureEvent& event) {
          if (test_listener != nullptr) test_listener(event);
        },
};

// With a sample for each so many bytes, on average.
inline HeapOptions Sampling(std::uint64_t mean_bytes) {
  HeapOptions options;
  options.profile_bytes = mean_bytes;
  return options;
}

template <const Config& kConfig>
class TestAllocator {
 public:
  using Heap = typename TestedAllocator<kConfig>::Heap;

  explicit TestAllocator(const HeapOptions& options = HeapOptions()) {
    test_options = options;
    test_limits = LimitReport();
    // It keeps the last report for a while.
    std::construct_at(&test_reporter, test_line, &FindTestLimit);
    std::construct_at(&test_failures);
    test_handler = nullptr;
    test_listener = nullptr;
    memory.SetNowMs(1'000'000);
  }

  static Heap* NewThread() { return TestedAllocator<kConfig>::NoHeap(); }

  FailureEvent LastFailure() const {
    FailureEvent event;
    const FailureRing& ring = allocator->recovery().failures();
    ring.CopyOne(ring.recorded(), event);
    return event;
  }
  std::uint64_t failures() const {
    return allocator->recovery().failures().recorded();
  }

  FakeVirtualMemory memory;
  // Larger than a stack frame should be.
  std::unique_ptr<TestedAllocator<kConfig>> allocator =
      std::make_unique<TestedAllocator<kConfig>>(memory, kTestHost);
  Heap* self = NewThread();
};

// An allocator on the real kernel, which is not made for an end. Of what it has
// mapped nothing is left: its places are random, and a later test's fake kernel
// takes places without a look.
template <const Config& kConfig>
class RealTestAllocator {
 public:
  RealTestAllocator() = default;
  RealTestAllocator(const RealTestAllocator&) = delete;
  RealTestAllocator& operator=(const RealTestAllocator&) = delete;
  ~RealTestAllocator() {
    const Region& region = allocator->ace().region();
    for (unsigned i = 0; i < Region::kWindows; ++i) {
      const Region::Window& window = region.windows()[i];
      if (window.bytes != 0) memory.Unmap(window.begin, window.bytes);
    }
  }

  LinuxVirtualMemory memory;
  std::unique_ptr<TestedAllocator<kConfig>> allocator =
      std::make_unique<TestedAllocator<kConfig>>(memory, kTestHost);
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_TEST_ALLOCATOR_H_
