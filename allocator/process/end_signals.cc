#include "allocator/process/end_signals.h"

#include <signal.h>

#include <atomic>
#include <initializer_list>

#include "allocator/platform/errno_guard.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Written by InstallEndHook before any handler is there.
constinit std::atomic<EndHook> g_hook{nullptr};

void OnEnd(int signal) {
  const ErrnoGuard guard;
  // At once, so that a second signal ends the process though the hook hangs.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  g_hook.load(std::memory_order_relaxed)(signal);
  // Returns only where the signal ends nothing, as in the first process of a
  // container.
  SignalThread(signal);
}

}  // namespace

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
    // A second signal is let through.
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace hakmem
