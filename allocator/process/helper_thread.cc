#include "allocator/process/helper_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocator/platform/errno_guard.h"

namespace hakmem {
namespace {

void* Run(void* argument) {
  pthread_setname_np(pthread_self(), "hakmem");
  reinterpret_cast<void (*)()>(argument)();
  return nullptr;
}

}  // namespace

int StartHelperThread(void (*body)()) {
  pthread_attr_t attributes;
  const int refused = pthread_attr_init(&attributes);
  if (refused != 0) return refused;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // A new thread starts with its creator's mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error =
      pthread_create(&thread, &attributes, &Run, reinterpret_cast<void*>(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

void SleepMs(std::uint64_t ms) {
  const ErrnoGuard guard;
  const timespec duration = {
      .tv_sec = static_cast<time_t>(ms / 1000),
      .tv_nsec = static_cast<long>(ms % 1000) * 1'000'000};
  // By number, because nanosleep() is a cancellation point.
  syscall(SYS_nanosleep, &duration, nullptr);
}

}  // namespace hakmem
