// Ties reports of misuses, crashes and guarded blocks to the process: its
// options, and the one product that knows the blocks.
//
// Owns: nothing. Called by: the process's start. Thread-safety: once each.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_MISUSE_REPORTS_H_
#define HAKMEM_ALLOCATOR_FRONTEND_MISUSE_REPORTS_H_

namespace hakmem {

struct Options;

// While the options are read: from the first call on, reports are as they say.
void StartMisuseReports(const Options& options);

// HAKMEM_CRASH_REPORT. Once the program's own libraries are loaded.
void StartCrashReports();

// Listens to faults, where allocations are sampled for guards.
void StartGuardReports();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_MISUSE_REPORTS_H_
