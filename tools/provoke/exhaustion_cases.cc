// What hakmem has for itself, used up.
#include <cstdlib>

#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"

namespace hakmem::provoke {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = kMiB << 10;
constexpr std::size_t kTiB = kGiB << 10;

std::size_t SizeOr(const Settings& settings, std::size_t size) {
  return settings.size == 0 ? size : settings.size;
}

Verdict HeapLimit(const Settings& settings) {
  Pile pile;
  return {.provoked = pile.Fill({.size = SizeOr(settings, kMiB)}, kGiB)};
}

// Every second block of a full heap is free: much memory, in short runs.
Verdict UnitRuns(const Settings& settings) {
  constexpr std::size_t kHeld = 56;
  void* blocks[kHeld] = {};
  for (void*& block : blocks) block = malloc(kMiB);
  for (std::size_t i = 0; i < kHeld; i += 2) free(blocks[i]);
  void* const block = Try({.size = SizeOr(settings, 16 * kMiB)});
  for (std::size_t i = 1; i < kHeld; i += 2) free(blocks[i]);
  free(block);
  return {.provoked = block == nullptr};
}

// Addresses alone: nothing is touched.
Verdict Region(const Settings& settings) {
  Pile pile;
  return {.provoked =
              pile.Fill({.size = SizeOr(settings, 4 * kGiB)}, 64 * kTiB)};
}

}  // namespace

std::vector<Case> ExhaustionCases() {
  return {
      {"heap_limit", "Exhaustion", "heap_limit",
       "block after block under HAKMEM_HEAP_LIMIT=64M", "HAKMEM_HEAP_LIMIT",
       "64M", HeapLimit},
      {"unit_runs", "Exhaustion", "unit_runs",
       "16 MiB where 28 are free, but no two of them side by side",
       "HAKMEM_HEAP_LIMIT", "64M", UnitRuns},
      {"region", "Exhaustion", "region",
       "blocks of 4 GiB until hakmem's addresses are used up", nullptr, nullptr,
       Region},
  };
}

}  // namespace hakmem::provoke
