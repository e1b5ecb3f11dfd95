// Where failure events go beside the ring: the program's failure handler
// (hakmem_set_failure_handler), the public interface, the trace's lines.
//
// Owns: the handler. Called by: the core through Host::ask_for_memory; the
// process's start and end, slow paths. Thread-safety: any thread; with no lock
// held, because the handler is the program's.
//
// Invariants:
//   FH1: on one thread the handler does not run inside itself.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_FAILURE_HANDLER_H_
#define HAKMEM_ALLOCATOR_FRONTEND_FAILURE_HANDLER_H_

#include "allocator/failures/failure_event.h"
#include "allocator/hakmem.h"

namespace hakmem {

// Whether there is a handler and it asks for another try.
bool AskFailureHandler(const FailureEvent& event);

void ToPublic(const FailureEvent& event, hakmem_failure_event& to);

// In the child of a fork.
void ResetFailureHandlerAfterFork();

// At the start, once the options are read.
void StartFailureReports();

// A line with memory figures, at most each second. Called by slow paths while
// SlowWork::kMemoryLines is wanted.
void WriteMemoryLineIfDue();

// When the process ends.
void EndFailureReports();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_FAILURE_HANDLER_H_
