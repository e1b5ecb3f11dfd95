// What hakmem has for itself, used up.

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
      {"region", "Exhaustion", "region",
       "blocks of 4 GiB until hakmem's addresses are used up", nullptr, nullptr,
       Region},
  };
}

}  // namespace hakmem::provoke
