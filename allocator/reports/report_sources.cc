#include "allocator/reports/report_sources.h"

#include <atomic>

namespace hakmem {
namespace {

// Written once, at the start; read by reports.
constinit std::atomic<SurroundingsSource> g_surroundings{nullptr};
constinit std::atomic<HistorySource> g_history{nullptr};

}  // namespace

void SetSurroundingsSource(SurroundingsSource source) {
  g_surroundings.store(source, std::memory_order_relaxed);
}

void SetHistorySource(HistorySource source) {
  g_history.store(source, std::memory_order_relaxed);
}

bool FindSurroundings(std::uintptr_t address, Surroundings& surroundings) {
  const SurroundingsSource source =
      g_surroundings.load(std::memory_order_relaxed);
  if (source == nullptr) return false;
  source(address, surroundings);
  return true;
}

bool FindHistory(std::uintptr_t block, BlockHistory& history) {
  const HistorySource source = g_history.load(std::memory_order_relaxed);
  if (source == nullptr) return false;
  source(block, history);
  return history.allocation.known || history.release.known;
}

}  // namespace hakmem
