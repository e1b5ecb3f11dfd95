// Heap profiles of pprof's form (profile.proto, gzip or not), as values: those
// of `hakmem heap --pprof`, of Go programs, and of other allocators.
#ifndef HAKMEM_TOOLS_HAKMEM_PPROF_READER_H_
#define HAKMEM_TOOLS_HAKMEM_PPROF_READER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "tools/hakmem/heap_profile.h"

namespace hakmem::tools {

// By its first bytes.
bool IsPprof(std::string_view bytes);

// The names in it go to the modules. It does not tell samples and errors: these
// are guessed from the period. The error is a sentence's end.
absl::StatusOr<HeapProfiles> ReadPprof(std::string_view bytes,
                                       HeapModules& modules);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PPROF_READER_H_
