// The counters of calls that slow paths serve; the rest of the statistics is
// what heaps count.
//
// Owns: the counters. Called by: Allocator. Thread-safety: any thread adds, and
// statistics read, relaxed: they are sums.
#ifndef HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_
#define HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "allocator/config/config.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"

namespace hakmem {

struct CallCounters {
  // Counts for threads without a heap and guarded blocks: Tiny, Pool.
  std::atomic<std::uint64_t> direct_allocations[2] = {};
  std::atomic<std::uint64_t> direct_bytes[2] = {};
  std::atomic<std::uint64_t> span_allocations{0};
  std::atomic<std::uint64_t> span_bytes{0};
  std::atomic<std::uint64_t> huge_allocations{0};
  std::atomic<std::uint64_t> huge_bytes{0};
  std::atomic<std::uint64_t> reallocs_in_place{0};
  std::atomic<std::uint64_t> reallocs_moved{0};

  static void Count(std::atomic<std::uint64_t>& counter,
                    std::uint64_t amount = 1) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
  template <const Config& kConfig>
  static void CountRealloc(std::atomic<std::uint64_t>& counter) {
    if constexpr (kConfig.count_reallocs) Count(counter);
  }
  void CountDirect(SizeClass size_class) {
    const unsigned route = IsTiny(size_class) ? 0 : 1;
    Count(direct_allocations[route]);
    Count(direct_bytes[route], ClassBytes(size_class));
  }
  void CountSpan(std::uint64_t bytes) {
    Count(span_allocations);
    Count(span_bytes, bytes);
  }
  void CountHuge(std::uint64_t bytes) {
    Count(huge_allocations);
    Count(huge_bytes, bytes);
  }

  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    visit(Statistic::kTinyAllocations, direct_allocations[0]);
    visit(Statistic::kTinyBytes, direct_bytes[0]);
    visit(Statistic::kPoolAllocations, direct_allocations[1]);
    visit(Statistic::kPoolBytes, direct_bytes[1]);
    visit(Statistic::kSpanAllocations, span_allocations);
    visit(Statistic::kSpanBytes, span_bytes);
    visit(Statistic::kHugeAllocations, huge_allocations);
    visit(Statistic::kHugeBytes, huge_bytes);
    visit(Statistic::kReallocsInPlace, reallocs_in_place);
    visit(Statistic::kReallocsMoved, reallocs_moved);
  }

  void AddTo(Statistics& statistics) const {
    StatisticSum sum(statistics);
    VisitCounters(sum);
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_
