// Makes what catching needs of a C++ runtime weak in the file that includes it,
// so that hakmem depends on libc alone.
//
// Owns: nothing. Called by: the frontend's files that are compiled with
// exceptions. Such a file stays out of link-time optimisation, which would move
// its references away from what is said of them here (.bazelrc).
// Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_WEAK_RUNTIME_H_
#define HAKMEM_ALLOCATOR_FRONTEND_WEAK_RUNTIME_H_

#include "allocator/base/compiler.h"

// The compiler itself makes the references to these.
__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak _ZSt9terminatev\n"
    ".weak _Unwind_Resume\n");
extern "C" HAK_WEAK void* HakBeginCatch(void*) __asm__("__cxa_begin_catch");

namespace hakmem {

// False: the program has no runtime that hakmem can see (a plugin may have
// loaded one privately), and nothing can be caught.
inline bool CanCatch() { return &HakBeginCatch != nullptr; }

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_WEAK_RUNTIME_H_
