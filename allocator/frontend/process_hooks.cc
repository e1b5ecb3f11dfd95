#include "allocator/frontend/process_hooks.h"

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/failure_handler.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/helper_thread.h"
#include "allocator/process/signals.h"
#include "allocator/process/thread_hooks.h"
#include "allocator/reports/report_text.h"

namespace hakmem {
namespace {

// Set by the first thread that gets there, read by all. Whoever finds it set
// goes on without waiting, because registering may allocate and so come back
// here on the same thread.
constinit std::atomic<bool> g_fork_hooks_claimed{false};

HAK_AT_FORK constinit FutexLock g_registration;

// Written in the child of a fork, where there is one thread.
HAK_AT_FORK constinit bool g_is_forked = false;

// The thread got its heap while it was creating the key.
constinit thread_local bool t_arms_later HAK_TLS_INITIAL_EXEC = false;

// Only its address is used: the hook finds the thread's heap by itself.
constinit char g_armed = 0;

// From prepare to parent or child. Belongs to the thread that forks, except for
// the first member.
struct Fork {
  // Who forks; 0: nobody.
  std::atomic<std::uint64_t> thread{0};
  // Counts forks within this one, in what runs between: they find all done.
  int depth = 0;
  bool streams_locked = false;
  SignalMask signals = 0;
};
HAK_AT_FORK constinit Fork g_fork;

// Signals are held off, so that no handler of one can fork while half of the
// locks are taken: its child would go on with locks that it has reset, libc's
// among them.
void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FutexLock::Identify();
  if (g_fork.thread.load(std::memory_order_relaxed) == FutexLock::Self()) {
    ++g_fork.depth;
    return;
  }
  const SignalMask signals = HoldSignals();
  g_registration.LockForFork();
  const bool streams_locked = LockStreamList();
  ProductPrepareFork();
  g_fork.streams_locked = streams_locked;
  g_fork.signals = signals;
  g_fork.thread.store(FutexLock::Self(), std::memory_order_relaxed);
}

// False: the outer of two forks goes on.
bool EndFork(bool& streams_locked, SignalMask& signals) {
  if (g_fork.depth != 0) {
    --g_fork.depth;
    return false;
  }
  streams_locked = g_fork.streams_locked;
  signals = g_fork.signals;
  g_fork.thread.store(0, std::memory_order_relaxed);
  return true;
}

void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  bool streams_locked = false;
  SignalMask signals = 0;
  if (!EndFork(streams_locked, signals)) return;
  ProductParentAfterFork();
  if (streams_locked) UnlockStreamList();
  g_registration.UnlockAfterFork();
  RestoreSignals(signals);
}

void ChildAfterFork() {
  bool streams_locked = false;
  SignalMask signals = 0;
  if (!EndFork(streams_locked, signals)) return;
  g_is_forked = true;
  if (streams_locked) ResetStreamList();
  // Its holder may have been another thread, which is not in the child.
  g_registration.ResetAfterFork();
  ResetFailureHandlerAfterFork();
  ReportText::ResetAfterFork();
  ForgetHelpersAfterFork();
  ForgetBackgroundThread();
  ProductChildAfterFork();
  WantBackgroundThread();
  RestoreSignals(signals);
}

void OnThreadExit(void* /*argument*/) {
  // By calls of the kernel that a filter may refuse.
  if (AreHelpersWanted()) NoteThreadExit();
  ProductExitThread();
}

// A thread that libc will not watch gives the heap back at once and does
// without.
void Arm() {
  if (!ArmThreadExit(&g_armed)) OnThreadExit(nullptr);
}

}  // namespace

void InstallThreadExitHookOnce() {
  const HookState state = InstallThreadExitHook(&OnThreadExit);
  if (state != HookState::kInstalled || !t_arms_later) return;
  t_arms_later = false;
  Arm();
}

void InstallForkHooksOnce() {
  // Reading first keeps the line shared between threads that attach.
  if (g_fork_hooks_claimed.load(std::memory_order_relaxed) ||
      g_fork_hooks_claimed.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  if (!InstallForkHooks(&PrepareFork, &ParentAfterFork, &ChildAfterFork)) {
    g_fork_hooks_claimed.store(false, std::memory_order_relaxed);
  }
}

FutexLock& ForkRegistration() { return g_registration; }

bool IsForked() { return g_is_forked; }

void OnThreadAttached() {
  InstallForkHooksOnce();
  NoteAttachedThread();
  switch (InstallThreadExitHook(&OnThreadExit)) {
    case HookState::kInstalled:
      return Arm();
    case HookState::kInTheMaking:
      t_arms_later = true;
      return;
    case HookState::kRefused:
      // A heap stays with its dead thread: its blocks can still be freed, only
      // its memory is not used again.
      return;
  }
}

}  // namespace hakmem
