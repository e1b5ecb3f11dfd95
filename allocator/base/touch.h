// Having memory at hand that is about to be written.
//
// Owns: nothing. Called by: heap. Thread-safety: the memory is the caller's.
#ifndef HAKMEM_ALLOCATOR_BASE_TOUCH_H_
#define HAKMEM_ALLOCATOR_BASE_TOUCH_H_

#include "allocator/base/compiler.h"

namespace hakmem {

// Leaves the byte as it is, in one access that counts as a write: a page that
// is not there gets its memory at once, instead of the page of zeros first.
HAK_ALWAYS_INLINE void TouchToWrite(void* at) {
#if defined(__x86_64__)
  __asm__ volatile("orb $0, %0"
                   : "+m"(*static_cast<volatile char*>(at))
                   :
                   : "cc");
#else
  __atomic_fetch_or(static_cast<unsigned char*>(at), 0, __ATOMIC_RELAXED);
#endif
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_TOUCH_H_
