#include "allocator/base/system_call.h"

#include <sys/syscall.h>

#include <cerrno>

#include "allocator/base/compiler.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <unistd.h>
#endif

namespace hakmem {
namespace {

// All but what strict mode has, and what is the program's own.
bool IsRefused(long number) {
  return t_is_strict && number != SYS_read && number != SYS_write &&
         number != SYS_exit && number != SYS_prctl;
}

HAK_ALWAYS_INLINE long Call(long number, unsigned long a, unsigned long b,
                            unsigned long c, unsigned long d, unsigned long e,
                            unsigned long f) {
  if (IsRefused(number)) return -EPERM;
#if defined(__x86_64__)
  long answer = number;
  register unsigned long r10 __asm__("r10") = d;
  register unsigned long r8 __asm__("r8") = e;
  register unsigned long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "+a"(answer)
                   : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return answer;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register unsigned long x0 __asm__("x0") = a;
  register unsigned long x1 __asm__("x1") = b;
  register unsigned long x2 __asm__("x2") = c;
  register unsigned long x3 __asm__("x3") = d;
  register unsigned long x4 __asm__("x4") = e;
  register unsigned long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return static_cast<long>(x0);
#else
  const int before = errno;
  const long answer = syscall(number, a, b, c, d, e, f);
  const int error_number = errno;
  errno = before;
  return answer == -1 ? -error_number : answer;
#endif
}

}  // namespace

long RawSystemCall(long number, unsigned long a, unsigned long b,
                   unsigned long c, unsigned long d, unsigned long e) {
  return Call(number, a, b, c, d, e, 0);
}

long RawSystemCall6(long number, unsigned long a, unsigned long b,
                    unsigned long c, unsigned long d, unsigned long e,
                    unsigned long f) {
  return Call(number, a, b, c, d, e, f);
}

}  // namespace hakmem
