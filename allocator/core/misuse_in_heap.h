// The report of a block that a heap found unsound.
//
// Owns: nothing. Called by: heaps, by the hook that Allocator gives them.
// Thread-safety: any thread, under a heap's lock.
#ifndef HAKMEM_ALLOCATOR_CORE_MISUSE_IN_HEAP_H_
#define HAKMEM_ALLOCATOR_CORE_MISUSE_IN_HEAP_H_

#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/heap/heap_system.h"

namespace hakmem {

HAK_COLD void ReportUnsoundBlock(const UnsoundBlock& found,
                                 const char* variant);
template <const Config& kConfig>
void ReportUnsoundBlockOf(const UnsoundBlock& found) {
  ReportUnsoundBlock(found, kConfig.name);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_MISUSE_IN_HEAP_H_
