// Failure events for people, on a terminal.
//
// Owns: the words. Called by: frontend, at the end of the process and in a
// signal handler. Thread-safety: any thread; nothing allocates.
#ifndef HAKMEM_ALLOCATOR_FAILURES_FAILURE_TEXT_H_
#define HAKMEM_ALLOCATOR_FAILURES_FAILURE_TEXT_H_

#include "allocator/base/raw_print.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/failure_ring.h"

namespace hakmem {

// One to three lines:
//   #17 malloc of 123 bytes returned_null after 2 attempts: MapFail/rlimit_as
//   (thread 4711 "worker")
//       mmap of 2.0 MiB: ENOMEM; RLIMIT_AS is 1.0 GiB, in use 1023.0 MiB,
//       needed 2.0 MiB from 0x401136 0x7f0012345678
void PrintFailure(const FailureEvent& event, RawPrinter& out);

// Writes the ring's events to a descriptor, oldest first, after a line that
// says how many there are and were.
void WriteFailures(const FailureRing& ring, int fd);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_FAILURE_TEXT_H_
