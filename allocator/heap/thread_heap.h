// The heap of a thread, whole: the class and what its calls do.
//
// Owns: nothing. Called by: the registry, core, tests. Thread-safety: as
// thread_heap_class.h says.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_H_

#include "allocator/heap/block_cache_rest.h"   // IWYU pragma: export
#include "allocator/heap/heap_store_filing.h"  // IWYU pragma: export
#include "allocator/heap/thread_heap_class.h"  // IWYU pragma: export
#include "allocator/heap/thread_heap_flush.h"  // IWYU pragma: export
#include "allocator/heap/thread_heap_slow.h"   // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_H_
