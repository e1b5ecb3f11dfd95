// Calls that the allocator makes to whoever embeds it.
//
// Owns: nothing. Called by: Allocator; filled in by frontend and tests.
// Thread-safety: constants; each function says what it may do.
#ifndef HAKMEM_ALLOCATOR_CORE_HOST_H_
#define HAKMEM_ALLOCATOR_CORE_HOST_H_

#include "allocator/config/heap_options.h"
#include "allocator/failures/failure_event.h"

namespace hakmem {

class FailureReporter;
class FailureRing;

struct Host {
  // Called once, before the first block is handed out; must not allocate.
  const HeapOptions& (*options)();
  // Called on a thread each time it gets a heap; may allocate, and may call
  // Detach when it cannot learn of the thread's exit.
  void (*on_attach)();
  // Completes failure events and hands them on.
  FailureReporter* reporter;
  // Keeps the last of them. Not a part of the allocator, whose other fields
  // would have its 150 KB stored in the library as zeros.
  FailureRing* failures;
  // Asks the program to free memory for a call that failed; true: it is worth
  // trying again. May allocate and free. Null: nobody to ask.
  bool (*ask_for_memory)(const FailureEvent& event) = nullptr;
  // An event is complete. Must not allocate. Null: nobody wants to know.
  void (*on_failure)(const FailureEvent& event) = nullptr;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_HOST_H_
