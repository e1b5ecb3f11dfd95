// The dlopen behind hakmem's own.
//
// Owns: nothing. Called by: frontend. Thread-safety: safe from any thread.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_NEXT_DLOPEN_H_
#define HAKMEM_ALLOCATOR_PLATFORM_NEXT_DLOPEN_H_

namespace hakmem {

using Dlopen = void* (*)(const char* file, int mode);

// Never null. It need not be libc's: other libraries stand before that, too.
Dlopen NextDlopen();

// `mode` without RTLD_DEEPBIND, where there is such a flag.
int WithoutDeepBind(int mode);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_NEXT_DLOPEN_H_
