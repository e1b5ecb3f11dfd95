#include "allocator/process/default_action.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/platform/errno_guard.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Whether the instruction that the handler returns to raises the signal again.
bool ComesAgain(int signal, const siginfo_t& info) {
  // SI_KERNEL is also that of a signal whose frame did not fit on the stack,
  // after which the program would go on.
  if (info.si_code <= 0 || info.si_code == SI_KERNEL) return false;
  return signal != SIGABRT &&
         (signal != SIGBUS || info.si_code != BUS_MCEERR_AO);
}

}  // namespace

void TakeDefaultAction(int signal, const siginfo_t& info) {
  const ErrnoGuard guard;
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  // Returning does a faulting instruction again, which now ends the process.
  if (ComesAgain(signal, info)) return;
  siginfo_t as_it_was = info;
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), ThreadId(), signal,
              &as_it_was) != 0) {
    SignalThread(signal);
  }
}

}  // namespace hakmem
