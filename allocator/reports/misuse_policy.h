// The fate of the process after a misuse (HAKMEM_ON_MISUSE), whether a wrong
// size is one (HAKMEM_CHECK_SIZES), and how often there was one.
//
// Owns: the choices, the counts by place. Called by: MisuseReport; Allocator;
// frontend, at the start; statistics. Thread-safety: any thread; no locks;
// never allocates.
//
// Invariants:
//   MP1: each misuse is counted once, in the total and at one place.
//   MP2: of the misuses at one place the first is reported whole, and the 10th,
//       100th, … by a line, however many there are.
#ifndef HAKMEM_ALLOCATOR_REPORTS_MISUSE_POLICY_H_
#define HAKMEM_ALLOCATOR_REPORTS_MISUSE_POLICY_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/config/heap_options.h"

namespace hakmem {

// Places that are told apart; misuses at more of them count as one place.
inline constexpr unsigned kMisusePlaces = 64;

namespace internal {
// Written once each, at the start or the end; read by who reports. The last
// call is taken by the first of these.
inline constinit Relaxed<OnMisuse> g_on_misuse{OnMisuse::kAbort};
inline constinit Relaxed<bool> g_sizes_checked{true};
inline constinit std::atomic<void (*)()> g_last_call{nullptr};
}  // namespace internal

// Once, at the start; until then it is kAbort.
inline void SetOnMisuse(OnMisuse choice) { internal::g_on_misuse = choice; }
inline OnMisuse CurrentOnMisuse() { return internal::g_on_misuse; }
// Once, at the start; until then it is true.
inline void SetSizesChecked(bool checked) {
  internal::g_sizes_checked = checked;
}
inline bool AreSizesChecked() { return internal::g_sizes_checked; }
// At the end of the process: what is called once a report was written that ends
// it.
inline void SetLastCall(void (*call)()) {
  internal::g_last_call.store(call, std::memory_order_relaxed);
}

// All misuses of the process that it went on after. Added to by whoever commits
// one, read by statistics.
inline constinit std::atomic<std::uint64_t> g_misuse_count{0};
inline std::uint64_t MisuseCount() {
  return g_misuse_count.load(std::memory_order_relaxed);
}

// Counts one; returns how many there have been at `place` (any number that says
// which call of the program it was, and which sentence).
std::uint64_t CountMisuse(std::uint64_t place);

// Whether the `count`th misuse at a place is worth a line.
bool IsReported(std::uint64_t count);

// Before a report of this thread, which says `sentence`, and after one that it
// goes on from. What a report calls may come back to one: then a line is
// written, and the process ends.
HAK_COLD void StartReport(std::string_view sentence);
HAK_COLD void EndReport();

// After a report was written: ends the process as HAKMEM_ON_MISUSE says; log
// has no say here.
[[noreturn]] HAK_COLD void EndAfterMisuse();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_MISUSE_POLICY_H_
