// The heap profile of a process that runs, or of its core file, read from
// outside: from the tables that hakmem_heap_tables leads to
// (docs/process_tables.md).
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_PROCESS_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_PROCESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

// Whether the name is a process's number, or a core file's.
bool IsProcess(const std::string& name);
bool IsProcessOrCore(const std::string& name);

// The error is a sentence.
absl::StatusOr<HeapProfiles> ReadHeapOfProcess(const std::string& name,
                                               HeapModules& modules);
// Its totals alone; an error where it does not sample.
absl::StatusOr<HeapKinds> ReadHeapTotals(const ProcessImage& image);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_PROCESS_H_
