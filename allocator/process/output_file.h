// Files that options name, and descriptors, in a program that does not know of
// them. In a path %p stands for the process; a relative one is from the folder
// that the process started in, wherever it goes.
//
// Owns: that folder's name. Called by: the failure trace, the call trace,
// reports, the frontend. Thread-safety: any thread, once the folder is kept,
// signal handlers included; nothing allocates; errno is left as it was; no
// function is a cancellation point.
#ifndef HAKMEM_ALLOCATOR_PROCESS_OUTPUT_FILE_H_
#define HAKMEM_ALLOCATOR_PROCESS_OUTPUT_FILE_H_

#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/process/process.h"

namespace hakmem {

// For the value of an option, at the start of the process: keeps the folder
// that it is in, if the path is relative.
void KeepFolderFor(std::string_view path);

bool HasProcessId(std::string_view path);

// The path from the root, as far as its folder was kept. Each %p becomes the
// calling process's id; any other character stands for itself.
void ExpandPath(std::string_view path, RawPrinter& out);

// OpenForAppend (process.h) of such a path, which is added to `out`, under a
// number that programs do not count on. `again`: by OpenForReport, in the
// middle of a program.
int OpenOutput(std::string_view path, FileReaders readers, RawPrinter& out,
               int& error_number, bool again = false);

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

#endif  // HAKMEM_ALLOCATOR_PROCESS_OUTPUT_FILE_H_
