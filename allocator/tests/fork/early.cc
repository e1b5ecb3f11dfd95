// A library whose constructor registers handlers of fork before the program has
// allocated anything. They allocate, on every route, before and after a fork.
//
// Those of the first kind wait in prepare for a lock with which other threads
// allocate, as handlers usually do. Those of the second kind are registered
// past every allocator's hooks, straight with libc, and so run between the
// allocator's own; one of them forks.
#include "allocator/tests/fork/early.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
bool g_off = false;
bool g_forking_within = false;
// Forks made by handlers so far; a few are enough.
int g_forks_within = 0;

void AllocateSome() {
  static constexpr std::size_t kSizes[] = {24, 700, 5000, 60000, 200000, 3};
  for (const std::size_t size : kSizes) {
    void* blocks[100];
    const int count = size > 10000 ? 3 : 100;
    for (int i = 0; i < count; ++i) {
      blocks[i] = malloc(size);
      if (blocks[i] == nullptr) abort();
      *static_cast<volatile char*>(blocks[i]) = 1;
    }
    for (int i = 0; i < count; ++i) free(blocks[i]);
  }
}

void PrepareWaiting() {
  if (g_off || g_forking_within) return;
  pthread_mutex_lock(&g_mutex);
  AllocateSome();
}
void ParentWaiting() {
  if (g_off || g_forking_within) return;
  AllocateSome();
  pthread_mutex_unlock(&g_mutex);
}

void AllocateBetween() {
  if (!g_off) AllocateSome();
}
void PrepareBetween() {
  AllocateBetween();
  if (g_off || g_forking_within || g_forks_within == 3) return;
  g_forking_within = true;
  ++g_forks_within;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (waitpid(child, nullptr, 0) != child) abort();
  g_forking_within = false;
}

__attribute__((constructor)) void Start() {
  using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);
  // Whatever is preloaded, or is in the program, comes before this library.
  const auto with_libc =
      reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__register_atfork"));
  if (with_libc == nullptr) abort();
  with_libc(&PrepareBetween, &AllocateBetween, &AllocateBetween, nullptr);
  pthread_atfork(&PrepareWaiting, &ParentWaiting, &ParentWaiting);
}

}  // namespace

pthread_mutex_t* EarlyMutex() { return &g_mutex; }
void StopEarlyHandlers() { g_off = true; }
