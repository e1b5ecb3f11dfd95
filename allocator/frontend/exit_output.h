// Where what is written at the end of the process goes: standard error, also
// when the program has closed it by then, or a file; and the heap profile,
// which goes there or to whoever calls hakmem_heap_profile.
//
// Owns: a copy of standard error's descriptor, if it was asked to keep one.
// Called by: the process's start and end. Thread-safety: start and end of the
// process.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_EXIT_OUTPUT_H_
#define HAKMEM_ALLOCATOR_FRONTEND_EXIT_OUTPUT_H_

#include "allocator/process/process.h"

namespace hakmem {

// At the start: ExitStderr() will be there, whatever the program closes.
void KeepStderr();

// Standard error; if the program has closed it or put a file of its own there,
// the copy that was kept; -1 if there is none, or it is gone, too.
int ExitStderr();

// For the value of an option: "1", standard error; else a path, in which %p is
// the process, to append to. -1: it cannot be opened, and a warning says so.
int OpenExitOutput(const char* option, const char* value, FileReaders readers);
// With what it was opened for. `error_number`: of what could not be written, of
// which a warning tells then; 0: all is there.
void CloseExitOutput(const char* option, const char* value, int fd,
                     int error_number);

// HAKMEM_HEAP_PROFILE, whose value this is. `signal`: the one that ends the
// process, in its handler; 0: it exits.
void WriteProfileAtEnd(const char* value, int signal);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_EXIT_OUTPUT_H_
