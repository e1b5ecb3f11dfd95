// The stress workload on the C++ API of every variant: beside the sanitizers'
// own malloc, so that they watch the allocator itself.
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "allocator/base/route.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/test_factor.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_reporter.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/failures/failure_trace.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/statistics/statistics.h"
#include "allocator/testing/stress_workload.h"

namespace hakmem {
namespace {

constinit HeapOptions default_options;
constinit TraceLine trace_line;
constinit FailureReporter reporter{trace_line};
constinit FailureRing failures;

constexpr Host kHost = {
    .options = []() -> const HeapOptions& { return default_options; },
    .on_attach = [] {},
    .reporter = &reporter,
    .failures = &failures,
};

template <const Config& kConfig>
struct Instance {
  using Heap = typename TestedAllocator<kConfig>::Heap;
  static constinit inline LinuxVirtualMemory memory;
  static constinit inline TestedAllocator<kConfig> allocator{memory, kHost};
  static constinit inline thread_local Heap* self =
      TestedAllocator<kConfig>::NoHeap();
};

template <const Config& kConfig>
class ApiTarget final : public stress::Target {
 public:
  // Half of the sizes have tokens.
  void* Allocate(std::size_t size) override {
    return HasToken(size)
               ? Of::allocator.AllocateWithToken(Of::self, size % kTokens,
                                                 kMinimumAlignment, size)
               : Of::allocator.Allocate(Of::self, size);
  }
  void* AllocateZeroed(std::size_t count, std::size_t size) override {
    return count == 1 && HasToken(size)
               ? Of::allocator.AllocateWithToken(
                     Of::self, size % kTokens, kMinimumAlignment, size,
                     BlockKind::kMalloc, /*zeroed=*/true)
               : Of::allocator.AllocateZeroed(Of::self, count, size);
  }
  void* AllocateAligned(std::size_t alignment, std::size_t size) override {
    return Of::allocator.AllocateAligned(Of::self, alignment, size);
  }
  void* Reallocate(void* block, std::size_t size) override {
    return Of::allocator.Reallocate(Of::self, block, size);
  }
  void Free(void* block) override { Of::allocator.Free(Of::self, block); }
  void FreeSized(void* block, std::size_t size,
                 std::size_t alignment) override {
    Of::allocator.FreeSized(Of::self, block, size,
                            alignment == 0 ? kMinimumAlignment : alignment);
  }
  std::size_t UsableSize(void* block) override {
    return Of::allocator.UsableSize(Of::self, block);
  }
  pid_t Fork() override {
    Of::allocator.PrepareFork();
    const pid_t child = fork();
    if (child == 0) {
      Of::allocator.ChildAfterFork(Of::self);
    } else {
      Of::allocator.ParentAfterFork();
    }
    return child;
  }
  void LeaveThread() override { Of::allocator.Detach(Of::self); }

 private:
  using Of = Instance<kConfig>;
  static constexpr std::size_t kMinimumAlignment = 16;
  static constexpr std::size_t kTokens = 8;

  static bool HasToken(std::size_t size) { return size / kTokens % 2 != 0; }
};

template <const Config& kConfig>
void Run(unsigned threads, std::uint64_t life_operations) {
  stress::Options options;
  // --gtest_random_seed has other choices made.
  options.seed =
      threads + static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)) * 100;
  options.threads = threads;
  options.operations = 60'000U * static_cast<unsigned>(TestFactor());
  options.max_bytes = std::size_t{64} << 20;
  options.life_operations = life_operations;
  options.fork_every = 10'000;
  // Sanitizers do not follow threads into a forked child.
  options.threads_in_child = false;
  ApiTarget<kConfig> target;
  const std::atomic<bool> stop{false};
  const stress::Outcome outcome = stress::RunStress(options, target, stop);
  EXPECT_EQ(outcome.counters.allocations, outcome.counters.frees);

  auto& allocator = Instance<kConfig>::allocator;
  // What stays granted is a few slabs of each heap; a lost span would show.
  constexpr std::uint64_t kMaxKeptPerHeap = std::uint64_t{4} << 20;
  allocator.upkeep().Purge(Instance<kConfig>::self);
  allocator.Detach(Instance<kConfig>::self);
  EXPECT_LE(allocator.upkeep().Snapshot().granted_bytes,
            kMaxKeptPerHeap * allocator.upkeep().Snapshot().heaps_created);
  EXPECT_EQ(allocator.upkeep().Snapshot().cached_bytes, 0U);
  allocator.CheckInvariants();
  std::uint64_t served = 0;
  const Statistics statistics = allocator.upkeep().Snapshot();
  for (const auto route : kRouteFields) {
    served += (statistics.*route).allocations;
  }
  EXPECT_GE(served, outcome.counters.allocations);
  EXPECT_EQ(statistics.failures, 0U);
}

// Few threads, so that heaps grow full; then many short ones, so that heaps
// are abandoned and adopted all the time.
template <const Config& kConfig>
void RunBoth() {
  Run<kConfig>(2, 0);
  Run<kConfig>(5, 500);
}

TEST(ApiStressTest, Release) { RunBoth<kRelease>(); }
TEST(ApiStressTest, Tracing) { RunBoth<kTracing>(); }
TEST(ApiStressTest, Hardened) { RunBoth<kHardened>(); }
TEST(ApiStressTest, Debug) { RunBoth<kDebug>(); }

}  // namespace
}  // namespace hakmem
