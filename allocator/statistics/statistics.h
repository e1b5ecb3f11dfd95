// Statistics: calls served and memory held, one plain struct, and its words.
//
// Owns: nothing; a Statistics is a snapshot. Called by: core fills it,
// frontend prints it. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_H_
#define HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/raw_print.h"
#include "allocator/base/route.h"

namespace hakmem {

struct RouteStatistics {
  std::uint64_t allocations = 0;  // calls served
  std::uint64_t bytes = 0;        // of the blocks served, summed over calls
};

struct Statistics {
  const char* variant = "";
  RouteStatistics routes[kRouteCount] = {};
  std::uint64_t remote_frees = 0;  // blocks freed by another thread
  std::uint64_t reallocs_in_place = 0;
  std::uint64_t reallocs_moved = 0;
  std::uint64_t failures = 0;  // calls that returned NULL
  // Bytes, now.
  std::uint64_t mapped_bytes = 0;  // for blocks
  std::uint64_t peak_mapped_bytes = 0;
  std::uint64_t metadata_bytes = 0;  // tables and magazines, mapped
  std::uint64_t granted_bytes = 0;   // in slabs and spans that are in use
  std::uint64_t cached_bytes = 0;    // free, not yet given back
  // Calls to the kernel.
  std::uint64_t map_calls = 0;
  std::uint64_t unmap_calls = 0;
  std::uint64_t purge_calls = 0;
  std::uint64_t move_calls = 0;
  // Heaps.
  std::uint64_t heaps_created = 0;
  std::uint64_t heaps_abandoned = 0;  // now without a thread
  // Where blocks and slabs came from, in the order in which heaps look.
  std::uint64_t refills_from_partial_slabs = 0;
  std::uint64_t refills_from_empty_slabs = 0;  // the heap's own
  std::uint64_t heaps_adopted = 0;             // with all their slabs
  std::uint64_t slabs_from_kept_units = 0;     // some may hold old data
  std::uint64_t slabs_from_clean_units = 0;
  std::uint64_t slabs_from_new_frames = 0;  // the kernel had to map them
  std::uint64_t misuses = 0;  // calls refused with HAKMEM_ON_MISUSE=log
};

// One JSON object on one line, with its newline; keys as the fields above, with
// `pid` and `program` first. `program` is escaped, and cut when it is long, so
// that the line is always whole.
void PrintStatisticsJson(const Statistics& statistics, int process_id,
                         const char* program, RawPrinter& out);

// A table for people, as malloc_stats() prints it.
void PrintStatisticsText(const Statistics& statistics, RawPrinter& out);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_H_
