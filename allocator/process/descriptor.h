// File descriptors that a library keeps in a program that does not know of
// them.
//
// Owns: nothing. Called by: failures, exit_output, process. Thread-safety: any
// thread, signal handlers included; nothing allocates; errno is left as it was;
// no function is a cancellation point.
#ifndef HAKMEM_ALLOCATOR_PROCESS_DESCRIPTOR_H_
#define HAKMEM_ALLOCATOR_PROCESS_DESCRIPTOR_H_

#include "allocator/base/standard_error.h"  // IWYU pragma: export

namespace hakmem {

// The same open file under a number that programs do not count on; -1 if there
// is none. Close-on-exec.
int CopyFdOutOfTheWay(int fd);
// The same; `fd` is closed then. `fd` itself if there is no such number.
int MoveFdOutOfTheWay(int fd);

// Keeps other processes that call it for the same file from going on until `fd`
// is closed, or this process has ended. Tries so often, each hundredth of a
// second. False: another one has it still, or the file cannot be locked.
bool LockFile(int fd, int tries = 100);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_DESCRIPTOR_H_
