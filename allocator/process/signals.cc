#include "allocator/process/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <initializer_list>

#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

constexpr SignalMask BitOf(int signal) { return SignalMask{1} << (signal - 1); }
// Signals of faults; and those of libc, which cancels threads and changes their
// user by signals that each must answer.
#if defined(__GLIBC__)
constexpr SignalMask kLibcs = BitOf(32) | BitOf(33);
#else
constexpr SignalMask kLibcs = BitOf(32) | BitOf(33) | BitOf(34);  // musl
#endif
constexpr SignalMask kNeverHeld =
    BitOf(SIGSEGV) | BitOf(SIGBUS) | BitOf(SIGFPE) | BitOf(SIGILL) |
    BitOf(SIGTRAP) | BitOf(SIGSYS) | BitOf(SIGABRT) | kLibcs;

// Not libc's function, which would not change the set of its own signals.
SignalMask Exchange(int how, SignalMask mask) {
  SignalMask before = 0;
  SystemCall(SYS_rt_sigprocmask, how, &mask, &before, sizeof(mask));
  return before;
}

// Written by InstallEndHook before any handler is there.
constinit std::atomic<EndHook> g_hook{nullptr};

void OnEnd(int signal) {
  const ErrnoGuard guard;
  // At once, so that a second signal ends the process though the hook hangs.
  SetDefaultAction(signal);
  g_hook.load(std::memory_order_relaxed)(signal);
  // Returns only where the signal ends nothing, as in the first process of a
  // container.
  SignalThread(signal);
}

}  // namespace

SignalMask HoldSignals() { return Exchange(SIG_BLOCK, ~kNeverHeld); }

void RestoreSignals(SignalMask before) { Exchange(SIG_SETMASK, before); }

void SetDefaultAction(int signal) {
  // The kernel's struct sigaction: a handler, flags, what returns, a mask.
  constexpr unsigned long kDefault[4] = {};
  SystemCall(SYS_rt_sigaction, signal, kDefault, 0, sizeof(SignalMask));
}

void UnblockSignal(int signal) { Exchange(SIG_UNBLOCK, BitOf(signal)); }

void InstallEndHook(EndHook hook, bool with_interrupt) {
  const ErrnoGuard guard;
  g_hook.store(hook, std::memory_order_relaxed);
  for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
    if (signal == SIGINT && !with_interrupt) break;
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0 ||
        action.sa_handler != SIG_DFL) {
      continue;
    }
    action = {};
    action.sa_handler = &OnEnd;
    // A second signal is let through. A signal that ends nothing fails no call.
    action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

bool HasReportStack(const void* context) {
  // As it was when the signal came: SS_AUTODISARM takes it away since.
  const stack_t& stack = static_cast<const ucontext_t*>(context)->uc_stack;
  const std::uintptr_t left =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) -
      reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  return left >= stack.ss_size || left >= kReportStackBytes;
}

}  // namespace hakmem
