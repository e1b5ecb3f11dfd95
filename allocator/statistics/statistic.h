// The numbers that statistics are made of, for who has counters.
//
// A class tells of its words by `VisitCounters(visit)`: for each, a call of
// visit(statistic, word), or with a weight.
//
// Owns: nothing. Called by: who has counters; their readers
// (statistics_tables.h). Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_STATISTICS_STATISTIC_H_
#define HAKMEM_ALLOCATOR_STATISTICS_STATISTIC_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

// The numbers of Statistics, in its order, which is hakmem_statistics', too.
// NOLINTNEXTLINE(performance-enum-size): of the layout.
enum class Statistic : std::uint16_t {
  kTinyAllocations,
  kTinyBytes,
  kPoolAllocations,
  kPoolBytes,
  kSpanAllocations,
  kSpanBytes,
  kHugeAllocations,
  kHugeBytes,
  kRemoteFrees,
  kReallocsInPlace,
  kReallocsMoved,
  kFailures,
  kMappedBytes,
  kPeakMappedBytes,
  kMetadataBytes,
  kGrantedBytes,
  kCachedBytes,
  kMapCalls,
  kUnmapCalls,
  kPurgeCalls,
  kMoveCalls,
  kHeapsCreated,
  kHeapsAbandoned,
  kRefillsFromPartialSlabs,
  kRefillsFromEmptySlabs,
  kHeapsAdopted,
  kSlabsFromKeptUnits,
  kSlabsFromCleanUnits,
  kSlabsFromNewFrames,
  kMisuses,
  kAceLockWaits,
  kHeapLockWaits,
  kRegistryLockWaits,
  kMagazinePoolLockWaits,
  kExchangeLockWaits,
  kAceLockWaitNs,
  kHeapLockWaitNs,
  kRegistryLockWaitNs,
  kMagazinePoolLockWaitNs,
  kExchangeLockWaitNs,
};
inline constexpr std::size_t kStatisticCount =
    static_cast<std::size_t>(Statistic::kExchangeLockWaitNs) + 1;

// NOLINTNEXTLINE(performance-enum-size): of the layout.
enum class PlaceKind : std::uint16_t {
  kProcess,  // one word
  kHeap,     // a word of each heap
  // The first of `weight` words of each heap. The low 16 bits of each are units
  // that are kept: no longer granted, but cached.
  kHeapSpans,
  // The first class's count of calls of each heap; the others follow. Of a
  // word, the low 16 bits are l, the others h; it is h + l if l is at least
  // 2^15, else h + l + 2^16; its low 48 bits.
  kHeapCalls,
};

// The words of a MetadataTable.
template <typename Table, typename Visit>
constexpr void VisitTable(const Table& table, Visit& visit) {
  visit(Statistic::kMetadataBytes, table.mapped_bytes_word());
  visit(Statistic::kMapCalls, table.map_calls_word());
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STATISTICS_STATISTIC_H_
