// What an allocator counts of its calls on slow paths; the rest of the
// statistics is what heaps count.
//
// Owns: the counters. Called by: Allocator. Thread-safety: any thread adds, and
// statistics read, relaxed: they are sums.
#ifndef HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_
#define HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace hakmem {

struct CallCounters {
  // Of threads without a heap: Tiny, Pool.
  std::atomic<std::uint64_t> direct_allocations[2] = {};
  std::atomic<std::uint64_t> direct_bytes[2] = {};
  std::atomic<std::uint64_t> span_allocations{0};
  std::atomic<std::uint64_t> span_bytes{0};
  std::atomic<std::uint64_t> huge_allocations{0};
  std::atomic<std::uint64_t> huge_bytes{0};
  std::atomic<std::uint64_t> reallocs_in_place{0};
  std::atomic<std::uint64_t> reallocs_moved{0};
  std::atomic<std::uint64_t> failed{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_CALL_COUNTERS_H_
