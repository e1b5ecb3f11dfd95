#include "allocator/process/fault_hook.h"

#include <signal.h>
#include <ucontext.h>

#include <atomic>

#include "allocator/base/check.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/process/default_action.h"
#include "allocator/process/signals.h"

namespace hakmem {
namespace {

constexpr int kSignals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
constexpr int kSignalEnd = 32;
constexpr unsigned kMaxListeners = 4;

struct Listener {
  FaultListener call;
  std::uint32_t signals;
};

// Written by AddFaultListener, read by handlers up to g_listener_count.
constinit Listener g_listeners[kMaxListeners] = {};
constinit std::atomic<unsigned> g_listener_count{0};
// By signal: what was there before our handler. Written before that is
// installed.
constinit struct sigaction g_before[kSignalEnd] = {};
// The signals that our handler is installed for; AddFaultListener's alone.
constinit std::uint32_t g_installed = 0;

bool HasHandler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

Fault Describe(int signal, const siginfo_t& info, const void* context) {
  Fault fault;
  fault.signal = signal;
  fault.has_stack = HasReportStack(context);
  const auto* const machine = static_cast<const ucontext_t*>(context);
  if ((signal == SIGSEGV || signal == SIGBUS) && info.si_code > 0 &&
      info.si_code != SI_KERNEL) {
    fault.has_address = true;
    fault.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  }
  fault.place = PlaceOf(context);
#if defined(__x86_64__)
  // The processor's error code of a page fault.
  constexpr greg_t kWriteBit = 2;
  const greg_t error = machine->uc_mcontext.gregs[REG_ERR];
  if (fault.has_address) {
    fault.access =
        (error & kWriteBit) != 0 ? Fault::Access::kWrite : Fault::Access::kRead;
  }
#else
  static_cast<void>(machine);
#endif
  return fault;
}

FaultVerdict TellListeners(const Fault& fault) {
  const ErrnoGuard guard;
  // acquire: pairs with the release in AddFaultListener.
  const unsigned count = g_listener_count.load(std::memory_order_acquire);
  for (unsigned i = 0; i < count; ++i) {
    const Listener& listener = g_listeners[i];
    if ((listener.signals & SignalBit(fault.signal)) == 0) continue;
    const FaultVerdict verdict = listener.call(fault);
    if (verdict != FaultVerdict::kUnknown) return verdict;
  }
  return FaultVerdict::kUnknown;
}

// Calls the handler that was there before ours as the kernel would.
void CallHandler(int signal, siginfo_t* info, void* context) {
  const struct sigaction before = g_before[signal];
  sigset_t old;
  if ((before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    g_before[signal] = {};
  }
  pthread_sigmask(SIG_BLOCK, &before.sa_mask, &old);
  if ((before.sa_flags & SA_NODEFER) != 0) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, signal);
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void OnFault(int signal, siginfo_t* info, void* context) {
  if (TellListeners(Describe(signal, *info, context)) ==
      FaultVerdict::kMended) {
    return;
  }
  if (HasHandler(g_before[signal])) {
    CallHandler(signal, info, context);
    return;
  }
  TakeDefaultAction(signal, *info);
}

// Whether `listener` may hear of the signal.
bool Install(int signal, OtherHandlers others) {
  struct sigaction& before = g_before[signal];
  if ((g_installed & SignalBit(signal)) == 0) {
    if (sigaction(signal, nullptr, &before) != 0) return false;
  }
  const bool has_handler = HasHandler(before);
  if (has_handler && others == OtherHandlers::kLeaveAlone) return false;
  if (!has_handler && before.sa_handler == SIG_IGN) return false;
  if ((g_installed & SignalBit(signal)) != 0) return true;
  struct sigaction action = {};
  action.sa_sigaction = &OnFault;
  action.sa_flags =
      SA_SIGINFO | (has_handler ? before.sa_flags & SA_ONSTACK : SA_ONSTACK);
  if (sigaction(signal, &action, nullptr) != 0) return false;
  g_installed |= SignalBit(signal);
  return true;
}

}  // namespace

CodePlace PlaceOf(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto word = [&machine](int index) {
    return static_cast<std::uintptr_t>(machine.gregs[index]);
  };
  return {.instruction = word(REG_RIP),
          .frame = word(REG_RBP),
          .stack_pointer = word(REG_RSP)};
#elif defined(__aarch64__)
  return {.instruction = machine.pc,
          .frame = machine.regs[29],
          .link = machine.regs[30]};
#else
  static_cast<void>(machine);
  return {};
#endif
}

std::uint32_t AddFaultListener(FaultListener listener, std::uint32_t signals,
                               OtherHandlers others) {
  const ErrnoGuard guard;
  const unsigned count = g_listener_count.load(std::memory_order_relaxed);
  HAK_CHECK_LT(count, kMaxListeners);
  std::uint32_t heard = 0;
  for (const int signal : kSignals) {
    if ((signals & SignalBit(signal)) != 0 && Install(signal, others)) {
      heard |= SignalBit(signal);
    }
  }
  g_listeners[count] = {listener, heard};
  // release: pairs with the acquire in TellListeners.
  g_listener_count.store(count + 1, std::memory_order_release);
  return heard;
}

}  // namespace hakmem
