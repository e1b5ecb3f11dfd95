// The cold ends of the C entry points.
//
// Owns: nothing. Called by: c_symbols.inc. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_FAILURE_H_
#define HAKMEM_ALLOCATOR_FRONTEND_FAILURE_H_

#include "allocator/base/compiler.h"

namespace hakmem {

// Set errno to ENOMEM or EINVAL and return null.
HAK_COLD void* FailWithNoMemory();
HAK_COLD void* FailWithInvalid();
// Sets errno and returns it.
HAK_COLD int FailWith(int error_number);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_FAILURE_H_
