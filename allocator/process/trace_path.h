// Paths of traces, in which %p stands for the process.
//
// Owns: nothing. Called by: the failure trace, the call trace.
// Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_PROCESS_TRACE_PATH_H_
#define HAKMEM_ALLOCATOR_PROCESS_TRACE_PATH_H_

#include <string_view>

#include "allocator/base/raw_print.h"

namespace hakmem {

bool HasProcessId(std::string_view path);

// Each %p becomes the calling process's id; any other character stands for
// itself.
void ExpandPath(std::string_view path, RawPrinter& out);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_TRACE_PATH_H_
