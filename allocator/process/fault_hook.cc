#include "allocator/process/fault_hook.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/process/helper_thread.h"
#include "allocator/process/process.h"
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

// Written by AddCrashHook; taken by the first thread that crashes.
struct Slot {
  std::atomic<CrashHook> hook{nullptr};
  std::atomic<std::uint32_t> signals{0};
};
constinit Slot g_slots[2];

// A thread of a process: a child of vfork writes to its parent's memory, and
// one of fork inherits what another thread was doing.
using Runner = std::uint64_t;
// Who runs the hooks; 0: nobody yet.
constinit std::atomic<Runner> g_runner{0};
// Who has run them. Written by that thread, read by those that wait.
constinit std::atomic<Runner> g_done{0};

constexpr std::uint64_t ProcessOf(Runner runner) { return runner >> 32; }

// A multiple of each page size.
constexpr std::size_t kAlternateStackBytes = 64 * 1024;

// By signal: what was there before our handler. Written before that is
// installed.
constinit struct sigaction g_before[kSignalEnd] = {};
// The signals that our handler is installed for.
constinit std::uint32_t g_installed = 0;

bool HasHandler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

Fault Describe(int signal, const siginfo_t& info, const void* context) {
  Fault fault = {.signal = signal,
                 .has_stack = HasReportStack(context),
                 .is_by_signal = true,
                 .place = PlaceOf(context)};
  // SI_KERNEL: an address that no memory can have, and which is not told.
  if ((signal == SIGSEGV || signal == SIGBUS) && info.si_code > 0 &&
      info.si_code != SI_KERNEL) {
    fault.has_address = true;
    fault.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
    fault.is_protected = signal == SIGSEGV && info.si_code == SEGV_ACCERR;
  }
#if defined(__x86_64__)
  // The processor's error code of a page fault.
  constexpr greg_t kWriteBit = 2;
  const greg_t error =
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  if (fault.has_address) {
    fault.access =
        (error & kWriteBit) != 0 ? Fault::Access::kWrite : Fault::Access::kRead;
  }
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

// What the kernel may not do for ours.
constexpr int kOwnFlags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;

// Calls the handler that was there before ours as the kernel would. The other
// flags and the mask are ours, too.
void CallHandler(int signal, siginfo_t* info, void* context) {
  const struct sigaction before = g_before[signal];
  if ((before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    g_before[signal] = {};
  }
  if ((before.sa_flags & SA_NODEFER) != 0) UnblockSignal(signal);
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

// The first that dies of a crash takes the process with it, so the others wait
// until the hooks have had their say, but not for ever.
void WaitForRunner(Runner runner) {
  constexpr int kSteps = 500;
  for (int i = 0; i < kSteps; ++i) {
    // acquire: pairs with the release in RunCrashHooks.
    if (g_done.load(std::memory_order_acquire) == runner) return;
    SleepMs(10);
  }
}

// Whether the instruction that the handler returns to raises the signal again.
bool ComesAgain(int signal, const siginfo_t& info) {
  // SI_KERNEL is also that of a signal whose frame did not fit on the stack,
  // after which the program would go on.
  if (info.si_code <= 0 || info.si_code == SI_KERNEL) return false;
  return signal != SIGABRT &&
         (signal != SIGBUS || info.si_code != BUS_MCEERR_AO);
}

// Has the signal do, once its handler returns, what it would have done without
// one.
void TakeDefaultAction(int signal, const siginfo_t& info) {
  // No call is left for that. A fault ends the process where its signal is
  // blocked, as it is here, or in the handler that this one comes to.
  if (t_is_strict) {
    [[maybe_unused]] const char byte =
        *reinterpret_cast<volatile char*>(UINTPTR_MAX);
  }
  SetDefaultAction(signal);
  // Returning does a faulting instruction again, which now ends the process.
  if (ComesAgain(signal, info)) return;
  siginfo_t as_it_was = info;
  if (SystemCall(SYS_rt_tgsigqueueinfo, ProcessId(), ThreadId(), signal,
                 &as_it_was) != 0) {
    SignalThread(signal);
  }
}

void OnFault(int signal, siginfo_t* info, void* context) {
  const Fault fault = Describe(signal, *info, context);
  if (TellListeners(fault) == FaultVerdict::kMended) return;
  if (HasHandler(g_before[signal])) {
    CallHandler(signal, info, context);
    return;
  }
  const ErrnoGuard guard;
  RunCrashHooks(fault);
  TakeDefaultAction(signal, *info);
}

// Whether the signal comes to our handler.
bool Install(int signal, OtherHandlers others) {
  struct sigaction& before = g_before[signal];
  if ((g_installed & SignalBit(signal)) == 0) {
    if (sigaction(signal, nullptr, &before) != 0) return false;
  }
  const bool has_handler = HasHandler(before);
  if (has_handler && others == OtherHandlers::kLeaveAlone) return false;
  if (!has_handler && before.sa_handler == SIG_IGN) return false;
  if ((g_installed & SignalBit(signal)) != 0) return true;
  struct sigaction action = before;
  action.sa_sigaction = &OnFault;
  action.sa_flags = SA_SIGINFO | (has_handler ? before.sa_flags & ~kOwnFlags
                                              : SA_ONSTACK | SA_RESTART);
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
          .stack_pointer = machine.sp,
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

void AddCrashHook(CrashHook hook, std::uint32_t signals) {
  const ErrnoGuard guard;
  for (Slot& slot : g_slots) {
    if (slot.hook.load(std::memory_order_relaxed) != nullptr) continue;
    slot.signals.store(signals, std::memory_order_relaxed);
    slot.hook.store(hook, std::memory_order_relaxed);
    break;
  }
  for (const int signal : kSignals) {
    if ((signals & SignalBit(signal)) != 0) {
      Install(signal, OtherHandlers::kLeaveAlone);
    }
  }
}

void RunCrashHooks(const Fault& fault) {
  const Runner self = static_cast<Runner>(ProcessId()) << 32 |
                      static_cast<std::uint32_t>(ThreadId());
  Runner first = g_runner.load(std::memory_order_relaxed);
  do {
    // A crash in a hook takes its course at once.
    if (first == self) return;
    if (ProcessOf(first) == ProcessOf(self)) return WaitForRunner(first);
  } while (
      !g_runner.compare_exchange_weak(first, self, std::memory_order_relaxed));
  for (Slot& slot : g_slots) {
    const CrashHook hook = slot.hook.load(std::memory_order_relaxed);
    if (hook != nullptr && (slot.signals.load(std::memory_order_relaxed) &
                            SignalBit(fault.signal)) != 0) {
      hook(fault);
    }
  }
  // release: pairs with the acquire in WaitForRunner.
  g_done.store(self, std::memory_order_release);
}

void UseAlternateStack() {
  const ErrnoGuard guard;
  stack_t before = {};
  if (sigaltstack(nullptr, &before) != 0 ||
      (before.ss_flags & SS_DISABLE) == 0) {
    return;
  }
  // As much below it stays closed: handlers of the program's come here, too.
  const long closed =
      SystemCall(SYS_mmap, nullptr, 2 * kAlternateStackBytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ErrorOf(closed) != 0) return;
  const stack_t stack = {
      .ss_sp = reinterpret_cast<char*>(closed) + kAlternateStackBytes,
      .ss_flags = 0,
      .ss_size = kAlternateStackBytes};
  if (SystemCall(SYS_mprotect, stack.ss_sp, stack.ss_size,
                 PROT_READ | PROT_WRITE) == 0) {
    sigaltstack(&stack, nullptr);
  }
}

}  // namespace hakmem
