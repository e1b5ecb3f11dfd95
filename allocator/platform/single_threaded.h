// Whether the process has one thread, as far as libc knows.
//
// Owns: nothing. Called by: whoever does what another thread might notice.
// Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_SINGLE_THREADED_H_
#define HAKMEM_ALLOCATOR_PLATFORM_SINGLE_THREADED_H_

namespace hakmem {

// False where libc does not tell (glibc before 2.32, musl).
bool IsSingleThreaded();

// Whether nobody can notice that a file is opened, or short of stack: as above,
// and the caller runs on the first stack.
bool MayOpenFiles();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_SINGLE_THREADED_H_
