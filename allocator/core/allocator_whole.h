// The allocator with all of its paths, for the files that compile it.
//
// Owns: nothing. Called by: frontend, test_allocator.cc. Thread-safety: as
// allocator.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_WHOLE_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_WHOLE_H_

#include "allocator/core/allocator.h"          // IWYU pragma: export
#include "allocator/core/allocator_check.h"    // IWYU pragma: export
#include "allocator/core/allocator_free.h"     // IWYU pragma: export
#include "allocator/core/allocator_hot.h"      // IWYU pragma: export
#include "allocator/core/allocator_parts.h"    // IWYU pragma: export
#include "allocator/core/allocator_rounded.h"  // IWYU pragma: export
#include "allocator/core/allocator_slow.h"     // IWYU pragma: export
#include "allocator/core/typed_blocks.h"       // IWYU pragma: export
#include "allocator/heap/thread_heap_slow.h"   // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_WHOLE_H_
