// Statistics: calls served and memory held, one plain struct, and its words.
//
// Owns: nothing; a Statistics is a snapshot. Called by: core fills it,
// frontend prints it. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_H_
#define HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/base/route.h"
#include "allocator/config/version.h"
#include "allocator/hakmem.h"

namespace hakmem {

class JsonText;

// The routes of the public struct, in the order of Route.
inline constexpr hakmem_route_statistics hakmem_statistics::* kRouteFields[] = {
    &hakmem_statistics::tiny, &hakmem_statistics::pool,
    &hakmem_statistics::span, &hakmem_statistics::huge};

// What the public struct tells, and what is printed beside. All numbers first,
// in the order of Statistic.
struct Statistics : hakmem_statistics {
  constexpr Statistics() : hakmem_statistics{} {}

  // Lock by lock, how often a thread found it held by another one, and waited.
  std::uint64_t ace_lock_waits = 0;
  std::uint64_t heap_lock_waits = 0;  // of all heaps
  std::uint64_t registry_lock_waits = 0;
  std::uint64_t magazine_pool_lock_waits = 0;
  std::uint64_t exchange_lock_waits = 0;
  // The same locks: how long threads slept for them.
  std::uint64_t ace_lock_wait_ns = 0;
  std::uint64_t heap_lock_wait_ns = 0;
  std::uint64_t registry_lock_wait_ns = 0;
  std::uint64_t magazine_pool_lock_wait_ns = 0;
  std::uint64_t exchange_lock_wait_ns = 0;
  const char* variant = "";
  const char* version = kVersion;

  // Of what is granted, heaps, who were asked first, keep so much: what they
  // have given back since is free already. Below 0 is what a signal handler
  // finds that interrupted ACE.
  void CountKept(std::uint64_t kept_bytes) {
    if (static_cast<std::int64_t>(granted_bytes) < 0) granted_bytes = 0;
    kept_bytes = std::min(kept_bytes, granted_bytes);
    granted_bytes -= kept_bytes;
    cached_bytes += kept_bytes;
  }
};

// What the slabs of one size class hold, as a walk over the tables found it.
struct ClassStatistics {
  std::uint32_t block_bytes = 0;
  std::uint32_t bytes_per_slab = 0;
  std::uint32_t slabs = 0;
  std::uint64_t live_blocks = 0;
  // In the slab or in caches, never used, or on the way to their owner.
  std::uint64_t free_blocks = 0;

  std::uint64_t slab_bytes() const {
    return std::uint64_t{slabs} * bytes_per_slab;
  }
  std::uint64_t live_bytes() const { return live_blocks * block_bytes; }
  // The part of the slabs' bytes, in thousandths, that no live block has.
  std::uint64_t FragmentationPermille() const {
    const std::uint64_t bytes = slab_bytes();
    return bytes == 0 ? 0 : (bytes - live_bytes()) * 1000 / bytes;
  }
};
// Classes without slabs are not printed.
using ClassList = std::span<const ClassStatistics>;

// Of which process they are, and when.
struct StatisticsMoment {
  int process_id = 0;
  const char* program = "";
  std::uint64_t unix_seconds = 0;  // 0: not known
  int signal = 0;                  // that ends the process; 0: none
};

// One JSON object on one line, with its newline; keys as the fields above, with
// `pid`, `program`, `time` and `signal`, as far as they are known, first and
// `classes` last. `program` is escaped, and cut when it is long, so that the
// line always fits into kStatisticsJsonBytes.
inline constexpr std::size_t kStatisticsJsonBytes = 16 * 1024;
void PrintStatisticsJson(const Statistics& statistics, ClassList classes,
                         const StatisticsMoment& moment, JsonText& out);

// A table for people, as malloc_stats() prints it, and one of the classes.
void PrintStatisticsText(const Statistics& statistics, ClassList classes,
                         const LineSink& sink);

// What labels have of a program's name: the kernel's names are shorter.
inline constexpr std::size_t kMaxMetricsProgramBytes = 32;

// As OpenMetrics, all of it, with its end. Each sample is labelled with the
// process.
struct MetricsProcess {
  std::uint64_t id = 0;
  std::string_view program;          // cut when it is long
  std::uint64_t resident_bytes = 0;  // as the kernel counts; 0: not known
};
void PrintStatisticsOpenMetrics(const Statistics& statistics,
                                const MetricsProcess& process,
                                const LineSink& sink);

// As malloc_info() prints it.
void PrintStatisticsXml(const Statistics& statistics, ClassList classes,
                        const LineSink& sink);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_H_
