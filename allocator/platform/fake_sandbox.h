// Makes the calling process one of a kind that is seldom met: without some
// system calls, as in containers, or without its first thread.
//
// Owns: nothing. Called by: tests, in a child process. Thread-safety: acts on
// the calling thread and its children.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_FAKE_SANDBOX_H_
#define HAKMEM_ALLOCATOR_PLATFORM_FAKE_SANDBOX_H_

#include <cerrno>
#include <functional>
#include <initializer_list>

namespace hakmem {

// In the place of an errno: who calls it is killed.
inline constexpr int kKills = 0;

// From now on each of `calls` fails with `error_number`. False: the kernel has
// no seccomp filters.
bool ForbidSystemCalls(std::initializer_list<int> calls,
                       int error_number = EPERM);

// On the first thread, which ends: exits with what `body` returns on a second
// one, after the kernel has forgotten the first one's memory.
[[noreturn]] void ExitWithoutFirstThread(const std::function<int()>& body);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_FAKE_SANDBOX_H_
