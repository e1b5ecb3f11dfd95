// The program's failure handler (hakmem_set_failure_handler), and failure
// events as the public interface has them.
//
// Owns: the handler. Called by: the core through Host::ask_for_memory.
// Thread-safety: any thread; with no lock held, because the handler is the
// program's.
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

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_FAILURE_HANDLER_H_
