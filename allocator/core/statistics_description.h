// The statistics of an allocator for readers from outside: where its counters
// lie.
//
// Owns: nothing. Called by: frontend, for a constant. Thread-safety: made at
// compile time.
#ifndef HAKMEM_ALLOCATOR_CORE_STATISTICS_DESCRIPTION_H_
#define HAKMEM_ALLOCATOR_CORE_STATISTICS_DESCRIPTION_H_

#include <cstddef>

#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/allocator_parts.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

template <const Config& kConfig>
struct StatisticsDescription {
  using Heap = typename Allocator<kConfig>::Heap;

  static constexpr StatisticsTables Of(const WholeAllocator<kConfig>& allocator,
                                       const char* hakmem_version) {
    const Heap* const no_heap = Allocator<kConfig>::NoHeap();
    StatisticsTables tables = {
        .magic = "hakstat",
        .version = StatisticsTables::kVersion,
        .place_offset = offsetof(StatisticsTables, places),
        .place_bytes = sizeof(StatisticPlace),
        .place_count = 0,
        .heap_bytes = sizeof(Heap),
        .classes = kClassCount,
        .tiny_classes = kTinyClassCount,
        .class_step_bytes = sizeof(typename Heap::ClassCache),
        .layout_step_bytes = sizeof(ClassLayout),
        .windows = Region::kWindows,
        .heap_count = &allocator.registry_.heap_count_word(),
        .heaps = &allocator.registry_.heaps_word(),
        .model = no_heap,
        .class_layouts = &kClassLayouts.data()->block_bytes,  // not [0]: gcc 16
        .hakmem_version = hakmem_version,
        .variant = kConfig.name,
        .first_window = allocator.ace_.region().windows(),
        .places = {}};
    StatisticPlaces visit(tables);
    allocator.ace_.VisitCounters(visit);
    allocator.parts().ace.VisitCounters(visit);
    allocator.registry_.VisitCounters(visit);
    allocator.parts().guards.VisitCounters(visit);
    allocator.parts().profile.VisitTables(
        [&visit](const MetadataTable& table) { VisitTable(table, visit); });
    allocator.counters_.VisitCounters(visit);
    visit(Statistic::kFailures, allocator.parts().recovery.failed_calls_word());
    visit(Statistic::kMisuses, g_misuse_count);
    no_heap->VisitCounters(visit);
    return tables;
  }
};

template <const Config& kConfig>
constexpr StatisticsTables DescribeStatistics(
    const WholeAllocator<kConfig>& allocator, const char* hakmem_version) {
  return StatisticsDescription<kConfig>::Of(allocator, hakmem_version);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_STATISTICS_DESCRIPTION_H_
