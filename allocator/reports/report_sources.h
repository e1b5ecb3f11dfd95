// Where reports learn of what lies around a block, and of its past: the layers
// that know lie above this room.
//
// Owns: the two functions. Called by: frontend, which sets them at the start;
// reports. Thread-safety: any thread; what is set must not allocate, wait for a
// lock, or believe the tables more than it must.
#ifndef HAKMEM_ALLOCATOR_REPORTS_REPORT_SOURCES_H_
#define HAKMEM_ALLOCATOR_REPORTS_REPORT_SOURCES_H_

#include <cstdint>

#include "allocator/base/relaxed.h"
#include "allocator/reports/address_facts.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

// When and by whom a block was last allocated and freed, as far as known.
struct BlockHistory {
  struct Event {
    bool known = false;
    int thread_id = 0;
    CallStack stack;
  };
  Event allocation;
  Event release;
};

using SurroundingsSource = void (*)(std::uintptr_t address,
                                    Surroundings& surroundings);
// `block` is a block's first byte.
using HistorySource = void (*)(std::uintptr_t block, BlockHistory& history);

namespace internal {
// Written once, at the start; read by reports.
inline constinit Relaxed<SurroundingsSource> g_surroundings{nullptr};
inline constinit Relaxed<HistorySource> g_history{nullptr};
}  // namespace internal

// Null, to begin with: nothing is known.
inline void SetSurroundingsSource(SurroundingsSource source) {
  internal::g_surroundings = source;
}
inline void SetHistorySource(HistorySource source) {
  internal::g_history = source;
}

// False: there is no source.
inline bool FindSurroundings(std::uintptr_t address,
                             Surroundings& surroundings) {
  const SurroundingsSource source = internal::g_surroundings;
  if (source != nullptr) source(address, surroundings);
  return source != nullptr;
}
// False: nothing is known.
inline bool FindHistory(std::uintptr_t block, BlockHistory& history) {
  const HistorySource source = internal::g_history;
  if (source != nullptr) source(block, history);
  return history.allocation.known || history.release.known;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_REPORT_SOURCES_H_
