// What `operator new` does when memory is short: the new-handler, then
// std::bad_alloc; both belong to the program's C++ runtime, which hakmem does
// not link.
//
// Owns: nothing. Called by: cpp_operators.inc, nothrow_new.cc.
// Thread-safety: any thread. May run user code and may throw.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_NEW_HANDLER_H_
#define HAKMEM_ALLOCATOR_FRONTEND_NEW_HANDLER_H_

#include <cstddef>

#include "allocator/base/compiler.h"

namespace hakmem {

// Tries, calls the new-handler and tries again, until there is a block (never
// null); without a handler throws std::bad_alloc. `alignment` is a power of
// two.
HAK_NOINLINE void* AllocateOrThrow(std::size_t size, std::size_t alignment);

// The same, but null without a handler.
HAK_NOINLINE void* AllocateOrNull(std::size_t size, std::size_t alignment);

// Throws std::bad_alloc, or ends the process when there is no C++ runtime.
[[noreturn]] HAK_COLD void ThrowBadAlloc(std::size_t size);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_NEW_HANDLER_H_
