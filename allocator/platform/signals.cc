#include "allocator/platform/signals.h"

#include <signal.h>

#include "allocator/platform/errno_guard.h"

namespace hakmem {

bool HandleUnusedSignal(int signal, void (*handler)(int signal)) {
  const ErrnoGuard guard;
  struct sigaction before = {};
  if (sigaction(signal, nullptr, &before) != 0) return false;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) {
    return false;
  }
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(signal, &action, nullptr) == 0;
}

}  // namespace hakmem
