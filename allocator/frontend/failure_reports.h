// Where failure events go beside the ring: the trace's lines.
//
// Owns: nothing. Called by: the process's start and end, slow paths.
// Thread-safety: any thread, unless it says otherwise.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_FAILURE_REPORTS_H_
#define HAKMEM_ALLOCATOR_FRONTEND_FAILURE_REPORTS_H_

namespace hakmem {

// At the start, once the options are read.
void StartFailureReports();

// A line with memory figures, at most each second. Called by slow paths while
// SlowWork::kMemoryLines is wanted.
void WriteMemoryLineIfDue();

// When the process ends.
void EndFailureReports();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_FAILURE_REPORTS_H_
