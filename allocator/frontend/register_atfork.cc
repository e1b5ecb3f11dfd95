// pthread_atfork, as far as a program's library reaches it: sees to it that
// hakmem's handlers come first.
//
// A library's constructor may register handlers before anything has allocated.
// Their prepare handlers would run after hakmem's, with its locks taken; the
// forking thread would be served all the same, but a handler that waits for
// another thread would wait for ever if that thread allocates.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

#include "allocator/base/compiler.h"
#include "allocator/frontend/process_hooks.h"
#include "allocator/process/futex_lock.h"

namespace hakmem {
namespace {

using Handler = void (*)();
using Register = int (*)(Handler prepare, Handler parent, Handler child,
                         void* object);

// libc's; written by whoever comes first, with the same value by all.
constinit std::atomic<Register> g_register{nullptr};

Register LibcRegister() {
  Register found = g_register.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__register_atfork"));
    g_register.store(found, std::memory_order_relaxed);
  }
  return found;
}

}  // namespace
}  // namespace hakmem

// Called by pthread_atfork, which each object has its own copy of. Weak: in a
// program without a dynamic linker, libc's own stands beside it.
extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] HAK_EXPORT int __register_atfork(hakmem::Handler prepare,
                                               hakmem::Handler parent,
                                               hakmem::Handler child,
                                               void* object);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier)
int __register_atfork(hakmem::Handler prepare, hakmem::Handler parent,
                      hakmem::Handler child, void* object) {
  hakmem::InstallForkHooksOnce();
  const hakmem::Register libc_register = hakmem::LibcRegister();
  if (libc_register == nullptr) return ENOMEM;
  hakmem::FutexLock::Identify();
  hakmem::FutexLock& lock = hakmem::ForkRegistration();
  // What libc allocates for it may bring a thread here to register ours.
  if (lock.IsHeldByThis()) {
    return libc_register(prepare, parent, child, object);
  }
  const hakmem::FutexLockHolder hold(lock);
  return libc_register(prepare, parent, child, object);
}
