// Forbids the calling process system calls, as containers do.
//
// Owns: nothing. Called by: tests, in a child process. Thread-safety: acts on
// the calling thread and its children.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_FAKE_SANDBOX_H_
#define HAKMEM_ALLOCATOR_PLATFORM_FAKE_SANDBOX_H_

#include <cerrno>
#include <initializer_list>

namespace hakmem {

// In the place of an errno: who calls it is killed.
inline constexpr int kKills = 0;

// From now on each of `calls` fails with `error_number`. False: the kernel has
// no seccomp filters.
bool ForbidSystemCalls(std::initializer_list<int> calls,
                       int error_number = EPERM);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_FAKE_SANDBOX_H_
