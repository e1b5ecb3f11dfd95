// The kernel, called by number.
//
// Owns: nothing. Called by: check.cc, platform, process, stacks.
// Thread-safety: any thread, signal handlers included.
//
// Not by libc's functions: a program, or what is preloaded beside this library,
// may have put others in their place, `syscall` included, which allocate or
// look a symbol up. Those would come back here from under a lock. Nor is this a
// cancellation point.
#ifndef HAKMEM_ALLOCATOR_BASE_SYSTEM_CALL_H_
#define HAKMEM_ALLOCATOR_BASE_SYSTEM_CALL_H_

#include <cstdint>
#include <type_traits>

#include "allocator/base/compiler.h"

namespace hakmem {

// Strict seccomp of the calling thread: the kernel kills for nearly all calls.
// These are refused here, with EPERM, and what needs one fails as by the
// kernel's refusal. Other threads go on as they were.
inline constinit thread_local bool t_is_strict HAK_TLS_INITIAL_EXEC = false;

// What the kernel answers: -1 to -4095 is an errno, negated. The thread's errno
// stays as it is.
long RawSystemCall(long number, unsigned long a, unsigned long b,
                   unsigned long c, unsigned long d, unsigned long e);
// Of six arguments, of which one goes over the stack.
long RawSystemCall6(long number, unsigned long a, unsigned long b,
                    unsigned long c, unsigned long d, unsigned long e,
                    unsigned long f);

namespace internal {
template <typename T>
unsigned long WordOf(T value) {
  if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    return static_cast<unsigned long>(value);
  }
}
}  // namespace internal

// Of up to six arguments, each a number or a pointer.
template <typename... Arguments>
long SystemCall(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 6);
  const unsigned long words[6] = {internal::WordOf(arguments)...};
  if constexpr (sizeof...(Arguments) <= 5) {
    return RawSystemCall(number, words[0], words[1], words[2], words[3],
                         words[4]);
  } else {
    return RawSystemCall6(number, words[0], words[1], words[2], words[3],
                          words[4], words[5]);
  }
}

// The errno in such an answer, 0 if it is none.
constexpr int ErrorOf(long answer) {
  return answer < 0 && answer >= -4095 ? static_cast<int>(-answer) : 0;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_SYSTEM_CALL_H_
