// Keeps errno as it was around calls into libc.
//
// Owns: a copy of the thread's errno. Called by: platform alone.
// Thread-safety: an object belongs to one thread.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_ERRNO_GUARD_H_
#define HAKMEM_ALLOCATOR_PLATFORM_ERRNO_GUARD_H_

#include <cerrno>

namespace hakmem {

class ErrnoGuard {
 public:
  ErrnoGuard() : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  const int saved_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_ERRNO_GUARD_H_
