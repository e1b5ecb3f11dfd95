#include "allocator/process/default_action.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/base/system_call.h"
#include "allocator/process/process.h"
#include "allocator/process/signals.h"

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
  SetDefaultAction(signal);
  // Returning does a faulting instruction again, which now ends the process.
  if (ComesAgain(signal, info)) return;
  siginfo_t as_it_was = info;
  if (SystemCall(SYS_rt_tgsigqueueinfo, ProcessId(), ThreadId(), signal,
                 &as_it_was) != 0) {
    SignalThread(signal);
  }
}

}  // namespace hakmem
