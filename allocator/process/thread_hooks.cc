#include "allocator/process/thread_hooks.h"

#include <pthread.h>

#include <atomic>

#include "allocator/base/compiler.h"
#include "allocator/platform/single_threaded.h"

#if defined(__GLIBC__)
// What pthread_atfork calls; declared in no header.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(),
                                 void (*child)(), void* object);
#endif

// Exported by glibc, in no header: the thread that has the lock may take it
// again, as fork itself does. Weak: another libc may not have them.
extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] void _IO_list_lock();
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] void _IO_list_unlock();
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] void _IO_list_resetlock();
}

namespace hakmem {

namespace {

using ThreadExitHook = void (*)(void* argument);

// Written by whoever comes first, with the same value by all.
constinit std::atomic<ThreadExitHook> g_hook{nullptr};
// Plus one; 0: there is none. Written once, read by all threads.
constinit std::atomic<pthread_key_t> g_key{0};

constinit thread_local bool t_creates_key HAK_TLS_INITIAL_EXEC = false;
// Whether the hook has run in this thread.
constinit thread_local bool t_has_run HAK_TLS_INITIAL_EXEC = false;

void OnExit(void* argument) {
  t_has_run = true;
  g_hook.load(std::memory_order_relaxed)(argument);
}

// In each round glibc goes through the keys by number. The values of the first
// 32 are in the thread itself, those of others in blocks that it allocates. So
// the last of the 32 is best: whatever round a destructor of a lower key arms
// the thread in, that key's turn is still to come; and a thread cannot use a
// higher key before it has allocated.
constexpr pthread_key_t kBestKey = 31;

// glibc gives the lowest number that is free. False: there is none.
bool CreateBestKey(pthread_key_t& key) {
  pthread_key_t keys[kBestKey + 1];
  unsigned count = 0;
  while (count <= kBestKey && pthread_key_create(&keys[count], &OnExit) == 0) {
    if (keys[count++] >= kBestKey) break;
  }
  if (count == 0) return false;
  unsigned best = count - 1;
  if (best != 0 && keys[best] > kBestKey) --best;
  for (unsigned i = 0; i < count; ++i) {
    if (i != best) pthread_key_delete(keys[i]);
  }
  key = keys[best];
  return true;
}

// Under no lock: what stands before libc's function may allocate, and so come
// back here, or wait for another thread. Of two keys one is enough.
HookState CreateKey() {
  if (t_creates_key) return HookState::kInTheMaking;
  t_creates_key = true;
  pthread_key_t key = 0;
  bool is_there = CreateBestKey(key);
  if (is_there) {
    pthread_key_t expected = 0;
    if (!g_key.compare_exchange_strong(expected, key + 1,
                                       std::memory_order_relaxed)) {
      pthread_key_delete(key);
    }
  } else {
    is_there = g_key.load(std::memory_order_relaxed) != 0;
  }
  t_creates_key = false;
  return is_there ? HookState::kInstalled : HookState::kRefused;
}

}  // namespace

HookState InstallThreadExitHook(ThreadExitHook hook) {
  // A fork's child would copy the page.
  if (g_hook.load(std::memory_order_relaxed) != hook)
    g_hook.store(hook, std::memory_order_relaxed);
  if (g_key.load(std::memory_order_relaxed) != 0) return HookState::kInstalled;
  return CreateKey();
}

bool ArmThreadExit(void* argument) {
  const pthread_key_t key = g_key.load(std::memory_order_relaxed) - 1;
  return !t_has_run && pthread_setspecific(key, argument) == 0;
}

bool InstallForkHooks(void (*prepare)(), void (*parent)(), void (*child)()) {
#if defined(__GLIBC__)
  // Handlers of an object are gone when its destructors have run. At the end of
  // the process, that is before those of the libraries, whose threads may still
  // fork. So these are no object's.
  return __register_atfork(prepare, parent, child, nullptr) == 0;
#else
  return pthread_atfork(prepare, parent, child) == 0;
#endif
}

bool LockStreamList() {
  if (IsSingleThreaded() || &_IO_list_lock == nullptr ||
      &_IO_list_unlock == nullptr || &_IO_list_resetlock == nullptr) {
    return false;
  }
  _IO_list_lock();
  return true;
}

void UnlockStreamList() { _IO_list_unlock(); }

void ResetStreamList() { _IO_list_resetlock(); }

}  // namespace hakmem
