// Where the counters behind the statistics lie: for readers in other processes,
// by the exported symbol hakmem_statistics_tables (docs/process_tables.md).
//
// Owns: the layout. Called by: who has counters, frontend; `hakmem stats PID`
// reads them. Thread-safety: constants.
//
// Invariants:
//   ST1: fields and statistics are only ever added at the end; `version`
//   changes
//        when one of the others changes its meaning.
#ifndef HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_TABLES_H_
#define HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_TABLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/statistics/statistic.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {

static_assert(sizeof(Statistics) ==
              8 * kStatisticCount + 2 * sizeof(const char*));
static_assert(sizeof(hakmem_statistics) ==
              8 * static_cast<std::size_t>(Statistic::kMisuses) + 8);

// A word to be added, times the weight, to a number of Statistics.
struct StatisticPlace {
  const void* word;  // of a heap: where the model has it
  Statistic statistic;
  PlaceKind kind;
  std::int32_t weight;
};

// Adds words of this process up. Whoever visits has what guards them.
class StatisticSum {
 public:
  explicit StatisticSum(Statistics& statistics)
      : numbers_(reinterpret_cast<char*>(&statistics)) {}

  void operator()(Statistic statistic, const std::atomic<std::uint64_t>& word,
                  std::int32_t weight = 1) {
    (*this)(statistic, word.load(std::memory_order_relaxed), weight);
  }
  void operator()(Statistic statistic, const std::uint64_t& word,
                  std::int32_t weight = 1) {
    char* const place = numbers_ + 8 * static_cast<std::size_t>(statistic);
    std::uint64_t number = 0;
    std::memcpy(&number, place, sizeof(number));
    number += word * static_cast<std::uint64_t>(std::int64_t{weight});
    std::memcpy(place, &number, sizeof(number));
  }
  // Whose words are no sums has them added otherwise.
  static void Next(PlaceKind) {}
  static void Calls(const void*) {}
  static void Spans(const void*, std::int32_t) {}

 private:
  char* numbers_;
};

struct StatisticsTables {
  static constexpr std::uint32_t kVersion = 2;
  static constexpr unsigned kMostPlaces = 112;

  char magic[8];  // "hakstat" and NUL
  std::uint32_t version;
  std::uint32_t place_offset;  // where the places begin
  std::uint32_t place_bytes;
  std::uint32_t place_count;
  std::uint32_t heap_bytes;
  std::uint32_t classes;
  std::uint32_t tiny_classes;       // the first ones
  std::uint32_t class_step_bytes;   // from one class's count to the next
  std::uint32_t layout_step_bytes;  // from one class's length to the next
  std::uint32_t windows;            // 0: it is not told where they lie
  const void* heap_count;           // an uint32_t
  const void* heaps;           // a pointer: heap i, from 1, is i heaps behind
  const void* model;           // a heap that is none
  const void* class_layouts;   // an uint32_t: the first class's length
  const char* hakmem_version;  // text
  const char* variant;
  // Two uint64_t for each: where it begins, and its bytes. Blocks have the
  // first one, between guard pages another one; the others have tables.
  const void* first_window;
  StatisticPlace places[kMostPlaces];
};

// Collects the places, at compile time.
class StatisticPlaces {
 public:
  explicit constexpr StatisticPlaces(StatisticsTables& tables)
      : tables_(tables) {}

  constexpr void operator()(Statistic statistic,
                            const std::atomic<std::uint64_t>& word,
                            std::int32_t weight = 1) {
    Add(&word, statistic, weight);
  }
  constexpr void operator()(Statistic statistic, const std::uint64_t& word,
                            std::int32_t weight = 1) {
    Add(&word, statistic, weight);
  }
  // What the next words are.
  constexpr void Next(PlaceKind kind) { kind_ = kind; }
  constexpr void Calls(const void* first) {
    kind_ = PlaceKind::kHeapCalls;
    Add(first, Statistic::kTinyAllocations, 1);
  }
  constexpr void Spans(const void* first, std::int32_t words) {
    kind_ = PlaceKind::kHeapSpans;
    Add(first, Statistic::kCachedBytes, words);
  }

 private:
  constexpr void Add(const void* word, Statistic statistic,
                     std::int32_t weight) {
    tables_.places[tables_.place_count++] = {word, statistic, kind_, weight};
  }

  StatisticsTables& tables_;
  PlaceKind kind_ = PlaceKind::kProcess;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STATISTICS_STATISTICS_TABLES_H_
