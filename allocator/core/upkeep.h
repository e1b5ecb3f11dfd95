// Upkeep: giving memory back, keeping it ready, and telling how much there is.
//
// Owns: nothing. Called by: Allocator, frontend. Thread-safety: any thread,
// after Allocator has started.
#ifndef HAKMEM_ALLOCATOR_CORE_UPKEEP_H_
#define HAKMEM_ALLOCATOR_CORE_UPKEEP_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "allocator/ace/ace.h"
#include "allocator/config/config.h"
#include "allocator/core/call_counters.h"
#include "allocator/core/heap_of_thread.h"
#include "allocator/core/recovery.h"
#include "allocator/core/sampled_heap.h"
#include "allocator/guards/sampled_guards.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/profile/heap_profile.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {

template <const Config& kConfig>
class Upkeep {
 public:
  using Heap = SampledHeap<kConfig>;

  constexpr Upkeep(Ace& ace,
                   HeapRegistry<kConfig, SampledHeap<kConfig>>& registry,
                   const SampledGuards& guards, const HeapProfile& profile,
                   const CallCounters& counters, const Recovery& recovery)
      : ace_(ace),
        registry_(registry),
        guards_(guards),
        profile_(profile),
        counters_(counters),
        recovery_(recovery) {}

  // Gives what heaps keep back to ACE: what this thread caches, and what lies
  // in the exchange, may free whole slabs, and these whole SuperSlabs.
  void Reclaim(Heap* self);
  // Gives back all free memory but what other threads' loaded magazines hold;
  // returns the bytes.
  std::size_t Purge(Heap* self) {
    Reclaim(self);
    // Blocks have gone home, to heaps that were looked at before.
    registry_.Reclaim();
    const std::size_t bytes = ace_.PurgeAll() + registry_.PurgeHoles();
    return bytes + registry_.PurgePools(/*if_many=*/false);
  }
  // For a thread that does nothing else: trims all heaps, gives their free
  // metadata back where there is much.
  void Maintain();

  Statistics Snapshot();
  MemoryFigures Figures();

 private:
  Ace& ace_;
  HeapRegistry<kConfig, SampledHeap<kConfig>>& registry_;
  const SampledGuards& guards_;
  const HeapProfile& profile_;
  const CallCounters& counters_;
  const Recovery& recovery_;
  // Of the last Maintain.
  std::uint64_t interval_ = 0;
};

template <const Config& kConfig>
void Upkeep<kConfig>::Reclaim(Heap* self) {
  if (HeapOfThread<kConfig>::Serves(self)) self->Flush();
  registry_.Reclaim();
}

template <const Config& kConfig>
void Upkeep<kConfig>::Maintain() {
  // Where a thread of the program was first, it has looked after some heaps,
  // and left the pools alone.
  const bool first = ace_.Tick();
  const std::uint64_t interval = ace_.intervals();
  if (std::exchange(interval_, interval) == interval) return;
  registry_.Trim(/*rest=*/!first);
  registry_.PurgeIdleHoles();
  registry_.PurgePools(/*if_many=*/true);
}

template <const Config& kConfig>
MemoryFigures Upkeep<kConfig>::Figures() {
  Statistics statistics;
  StatisticSum sum(statistics);
  registry_.VisitCounters(sum);  // without heaps
  ace_.AddStatistics(statistics);
  return {.granted = statistics.granted_bytes,
          .cached = statistics.cached_bytes,
          .mapped = statistics.mapped_bytes,
          .peak_mapped = statistics.peak_mapped_bytes,
          .metadata = statistics.metadata_bytes +
                      guards_.blocks().metadata_bytes() +
                      profile_.mapped_bytes(),
          .largest_free = ace_.LargestFreeBytes()};
}

template <const Config& kConfig>
Statistics Upkeep<kConfig>::Snapshot() {
  Statistics statistics;
  statistics.variant = kConfig.name;
  const std::uint64_t kept_units = registry_.AddStatistics(statistics);
  ace_.AddStatistics(statistics);
  statistics.metadata_bytes += profile_.mapped_bytes();
  statistics.map_calls += profile_.map_calls();
  statistics.CountKept(kept_units * kUnitBytes);
  counters_.AddTo(statistics);
  statistics.failures = recovery_.failed_calls();
  statistics.misuses = MisuseCount();
  return statistics;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_UPKEEP_H_
