// The allocator, whole: the class, its hot paths and its slow ones.
//
// Owns: nothing. Called by: frontend, tests, fuzzers. Thread-safety: as
// allocator_class.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_

#include "allocator/core/allocator_calls.h"    // IWYU pragma: export
#include "allocator/core/allocator_check.h"    // IWYU pragma: export
#include "allocator/core/allocator_class.h"    // IWYU pragma: export
#include "allocator/core/allocator_free.h"     // IWYU pragma: export
#include "allocator/core/allocator_hot.h"      // IWYU pragma: export
#include "allocator/core/allocator_rounded.h"  // IWYU pragma: export
#include "allocator/core/allocator_slow.h"     // IWYU pragma: export
#include "allocator/core/typed_blocks.h"       // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
