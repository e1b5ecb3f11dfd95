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
#include "allocator/config/heap_options.h"

namespace hakmem {

// Places that are told apart; misuses at more of them count as one place.
inline constexpr unsigned kMisusePlaces = 64;

// Once, at the start; until then it is kAbort.
void SetOnMisuse(OnMisuse choice);
OnMisuse CurrentOnMisuse();
// Once, at the start; until then it is true.
void SetSizesChecked(bool checked);
bool AreSizesChecked();

// All misuses of the process that it went on after.
std::uint64_t MisuseCount();
// Added to by whoever commits a misuse, read by statistics.
extern std::atomic<std::uint64_t> g_misuse_count;

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

// At the end of the process: what is called once a report was written that ends
// it.
void SetLastCall(void (*call)());
// After a report was written: ends the process as HAKMEM_ON_MISUSE says; log
// has no say here.
[[noreturn]] HAK_COLD void EndAfterMisuse();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_MISUSE_POLICY_H_
