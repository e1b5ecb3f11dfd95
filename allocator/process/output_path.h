// Paths of outputs that options name, in which %p stands for the process. A
// relative one is from the folder that the process started in, wherever it
// goes.
//
// Owns: that folder's name. Called by: the failure trace, the call trace,
// reports, the frontend. Thread-safety: any thread, once the folder is kept.
#ifndef HAKMEM_ALLOCATOR_PROCESS_OUTPUT_PATH_H_
#define HAKMEM_ALLOCATOR_PROCESS_OUTPUT_PATH_H_

#include <string_view>

#include "allocator/base/raw_print.h"

namespace hakmem {

// For the value of an option, at the start of the process: keeps the folder
// that it is in, if the path is relative.
void KeepFolderFor(std::string_view path);

bool HasProcessId(std::string_view path);

// The path from the root, as far as its folder was kept. Each %p becomes the
// calling process's id; any other character stands for itself.
void ExpandPath(std::string_view path, RawPrinter& out);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_OUTPUT_PATH_H_
