#include "allocator/frontend/process_hooks.h"

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "allocator/diag/report_text.h"
#include "allocator/frontend/background.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/failure_handler.h"
#include "allocator/platform/futex_lock.h"
#include "allocator/platform/thread_hooks.h"

namespace hakmem {
namespace {

constinit FutexLock g_key_lock;
constinit bool g_key_installed ABSL_GUARDED_BY(g_key_lock) = false;

// Set by the first thread that gets there, read by all. Whoever finds it set
// goes on without waiting, because registering may allocate and so come back
// here on the same thread.
constinit std::atomic<bool> g_fork_hooks_claimed{false};

// Only its address is used: the hook finds the thread's heap by itself.
constinit char g_armed = 0;

void ChildAfterFork() {
  // Its holder may have been another thread, which is not in the child.
  g_key_lock.ResetAfterFork();
  ResetFailureHandlerAfterFork();
  ReportText::ResetAfterFork();
  CurrentProductHooks().child_after_fork();
  WantBackgroundThread();
}

}  // namespace

bool InstallThreadExitHookOnce() {
  // Creating a key does not allocate, so holding a lock is safe.
  FutexLockHolder holder(g_key_lock);
  if (!g_key_installed) {
    g_key_installed = InstallThreadExitHook(CurrentProductHooks().thread_exit);
  }
  return g_key_installed;
}

void InstallForkHooksOnce() {
  // Reading first keeps the line shared between threads that attach.
  if (g_fork_hooks_claimed.load(std::memory_order_relaxed) ||
      g_fork_hooks_claimed.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  const ProductHooks& hooks = CurrentProductHooks();
  if (!InstallForkHooks(hooks.prepare_fork, hooks.parent_after_fork,
                        &ChildAfterFork)) {
    g_fork_hooks_claimed.store(false, std::memory_order_relaxed);
  }
}

void OnThreadAttached() {
  InstallForkHooksOnce();
  // Without a key, a heap stays with its dead thread: its blocks can still be
  // freed, only its memory is not used again.
  if (!InstallThreadExitHookOnce()) return;
  // A thread that libc will not watch any more (it is past its last round of
  // destructors) gives the heap back at once and does without.
  if (!ArmThreadExit(&g_armed)) CurrentProductHooks().thread_exit(nullptr);
}

}  // namespace hakmem
