#include "allocator/process/thread_hooks.h"

#include <limits.h>
#include <pthread.h>

#include "allocator/base/compiler.h"
#include "allocator/base/sanitizer.h"

namespace hakmem {

namespace {

using ThreadExitHook = void (*)(void* argument);

// Written by InstallThreadExitHook, which its caller serialises with every use;
// read by all threads.
constinit ThreadExitHook g_hook = nullptr;
constinit pthread_key_t g_key = 0;

// In how many rounds of destructors this thread has been seen.
constinit thread_local int t_rounds HAK_TLS_INITIAL_EXEC = 0;

// libc runs the destructors in PTHREAD_DESTRUCTOR_ITERATIONS rounds. The hook
// runs one round before the last, for two reasons: a destructor that allocates
// again after it can still be followed by it; and a thread that allocates for
// the first time in a destructor of the first round is seen one round late.
// ThreadSanitizer gives its thread up at the start of libc's last round, so
// under it nothing may run there.
constexpr int kLastRound =
    PTHREAD_DESTRUCTOR_ITERATIONS - (kThreadSanitizer ? 1 : 0);
constexpr int kHookRound = kLastRound - 1;

// The key's value after the hook has run: nothing to do but to count rounds.
constinit char g_no_argument = 0;

void OnRound(void* argument) {
  ++t_rounds;
  if (t_rounds < kHookRound && pthread_setspecific(g_key, argument) == 0) {
    return;
  }
  if (!kThreadSanitizer && t_rounds < kLastRound) {
    pthread_setspecific(g_key, &g_no_argument);
  }
  if (argument != &g_no_argument) g_hook(argument);
}

}  // namespace

bool InstallThreadExitHook(ThreadExitHook hook) {
  if (g_hook == nullptr && pthread_key_create(&g_key, &OnRound) != 0) {
    return false;
  }
  g_hook = hook;
  return true;
}

bool ArmThreadExit(void* argument) {
  return t_rounds < kLastRound && pthread_setspecific(g_key, argument) == 0;
}

bool InstallForkHooks(void (*prepare)(), void (*parent)(), void (*child)()) {
  return pthread_atfork(prepare, parent, child) == 0;
}

}  // namespace hakmem
