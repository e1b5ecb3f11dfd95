// The counters of calls that slow paths serve; the rest of the statistics is
// what heaps count.
//
// Owns: the counters. Called by: Allocator. Thread-safety: any thread adds, and
// statistics read, relaxed: they are sums.
#ifndef HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_
#define HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "allocator/base/route.h"
#include "allocator/config/config.h"
#include "allocator/statistics/statistic.h"

namespace hakmem {

struct CallCounters {
  // Calls and bytes by route, one after the other: of threads without a heap,
  // of Huge blocks and blocks of no bytes.
  std::atomic<std::uint64_t> of_routes[2 * kRouteCount] = {};
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
  void CountBlock(Route route, std::uint64_t bytes) {
    const auto at = static_cast<std::size_t>(route);
    Count(of_routes[2 * at]);
    Count(of_routes[2 * at + 1], bytes);
  }

  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    for (unsigned i = 0; i < 2 * kRouteCount; ++i) {
      visit(static_cast<Statistic>(i), of_routes[i]);
    }
    visit(Statistic::kReallocsInPlace, reallocs_in_place);
    visit(Statistic::kReallocsMoved, reallocs_moved);
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_
