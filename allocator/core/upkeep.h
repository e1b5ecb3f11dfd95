// Upkeep: giving memory back, keeping it ready, and telling how much there is.
//
// Owns: nothing; the allocator has it all. Called by: Allocator, frontend.
// Thread-safety: any thread, after Allocator has started.
#ifndef HAKMEM_ALLOCATOR_CORE_UPKEEP_H_
#define HAKMEM_ALLOCATOR_CORE_UPKEEP_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/core/heap_of_thread.h"
#include "allocator/core/recovery.h"
#include "allocator/core/sampled_heap.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/profile/heap_profile.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"

namespace hakmem {

template <const Config& kConfig>
class Allocator;

template <const Config& kConfig>
class Upkeep {
 public:
  using Heap = SampledHeap<kConfig>;

  explicit constexpr Upkeep(Allocator<kConfig>& core) : core_(core) {}

  // Gives what heaps keep back to ACE: what this thread caches, and what lies
  // in the exchange, may free whole slabs, and these whole SuperSlabs.
  HAK_COLD void Reclaim(Heap* self);
  // Gives back all free memory but what other threads' loaded magazines hold;
  // returns the bytes.
  HAK_COLD std::size_t Purge(Heap* self) {
    Reclaim(self);
    // Blocks have gone home, to heaps that were looked at before.
    core_.registry_.Reclaim();
    const std::size_t bytes =
        core_.ace_.PurgeAll() + core_.registry_.PurgeHoles();
    return bytes + core_.registry_.PurgePools(/*if_many=*/false);
  }
  // For a thread that does nothing else: trims all heaps, gives their free
  // metadata back where there is much.
  HAK_COLD void Maintain();

  HAK_COLD Statistics Snapshot();
  HAK_COLD MemoryFigures Figures();

 private:
  Allocator<kConfig>& core_;
  // Of the last Maintain.
  std::uint64_t interval_ = 0;
};

template <const Config& kConfig>
void Upkeep<kConfig>::Reclaim(Heap* self) {
  if (HeapOfThread<kConfig>::Serves(self)) self->Flush();
  core_.registry_.Reclaim();
}

template <const Config& kConfig>
void Upkeep<kConfig>::Maintain() {
  // Where a thread of the program was first, it has looked after some heaps,
  // and left the pools alone.
  const bool first = core_.ace_.TrimIfDue();
  const std::uint64_t interval = core_.ace_.intervals();
  if (std::exchange(interval_, interval) == interval) return;
  core_.registry_.Trim(/*rest=*/!first);
  core_.registry_.PurgeIdleHoles();
  core_.registry_.PurgePools(/*if_many=*/true);
}

template <const Config& kConfig>
MemoryFigures Upkeep<kConfig>::Figures() {
  Statistics statistics;
  StatisticSum sum(statistics);
  core_.registry_.VisitCounters(sum);  // without heaps
  core_.ace_.AddStatistics(statistics);
  return {.granted = statistics.granted_bytes,
          .cached = statistics.cached_bytes,
          .mapped = statistics.mapped_bytes,
          .peak_mapped = statistics.peak_mapped_bytes,
          .metadata = statistics.metadata_bytes +
                      core_.guards_.table().mapped_bytes() +
                      core_.profile_.mapped_bytes(),
          .largest_free = core_.ace_.LargestFreeBytes()};
}

template <const Config& kConfig>
Statistics Upkeep<kConfig>::Snapshot() {
  Statistics statistics;
  statistics.variant = kConfig.name;
  StatisticSum sum(statistics);
  const std::uint64_t kept_units = core_.registry_.AddTo(sum);
  core_.ace_.AddStatistics(statistics);
  core_.guards_.VisitCounters(sum);
  statistics.metadata_bytes += core_.profile_.mapped_bytes();
  statistics.map_calls += core_.profile_.map_calls();
  statistics.CountKept(kept_units * kUnitBytes);
  core_.counters_.VisitCounters(sum);
  statistics.failures = core_.recovery_.failed_calls();
  statistics.misuses = MisuseCount();
  return statistics;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_UPKEEP_H_
