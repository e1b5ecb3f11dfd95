#include "allocator/platform/crash_hook.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "allocator/platform/errno_guard.h"

namespace hakmem {
namespace {

using CrashHook = void (*)(int signal);

// Written by InstallCrashHook; taken by the first thread that crashes.
constinit std::atomic<CrashHook> g_hook{nullptr};

void OnCrash(int signal, siginfo_t* info, void*) {
  const ErrnoGuard guard;
  RunCrashHook(signal);
  // Returning does a faulting instruction again, which now ends the process. A
  // signal that somebody sent has to be sent again.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), signal);
}

}  // namespace

void InstallCrashHook(CrashHook hook) {
  const ErrnoGuard guard;
  g_hook.store(hook, std::memory_order_relaxed);
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) != 0 ||
        before.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction action = {};
    action.sa_sigaction = &OnCrash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(signal, &action, nullptr);
  }
}

void RunCrashHook(int signal) {
  const CrashHook hook = g_hook.exchange(nullptr, std::memory_order_relaxed);
  if (hook != nullptr) hook(signal);
}

}  // namespace hakmem
