#include "allocator/process/crash_hook.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/process/default_action.h"
#include "allocator/process/process.h"
#include "allocator/process/signals.h"

namespace hakmem {
namespace {

// Written by InstallCrashHook, which two callers may use; taken by the first
// thread that crashes.
struct Slot {
  std::atomic<CrashHook> hook{nullptr};
  std::atomic<CrashSignals> signals{CrashSignals::kMemory};
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

constexpr std::size_t kAlternateStackBytes = 64 * 1024;
alignas(16) constinit char g_alternate_stack[kAlternateStackBytes] = {};

bool Wants(CrashSignals signals, int signal) {
  return signals == CrashSignals::kAll || signal == SIGABRT ||
         signal == SIGBUS || signal == SIGSEGV;
}

// The first that dies of a crash takes the process with it, so the others wait
// until the hooks have had their say, but not for ever.
void WaitForRunner(Runner runner) {
  constexpr timespec kStep = {.tv_sec = 0, .tv_nsec = 10'000'000};
  constexpr int kSteps = 500;
  for (int i = 0; i < kSteps; ++i) {
    // acquire: pairs with the release in RunCrashHooks.
    if (g_done.load(std::memory_order_acquire) == runner) return;
    SystemCall(SYS_nanosleep, &kStep, nullptr);
  }
}

CrashSite Describe(int signal, const siginfo_t& info, const void* context) {
  CrashSite site;
  site.signal = signal;
  site.has_stack = HasReportStack(context);
  // SI_KERNEL: an address that no memory can have, and which is not told.
  site.has_address = (signal == SIGSEGV || signal == SIGBUS) &&
                     info.si_code > 0 && info.si_code != SI_KERNEL;
  if (site.has_address) {
    site.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
    site.is_protected = signal == SIGSEGV && info.si_code == SEGV_ACCERR;
  }
  site.context = context;
#if defined(__x86_64__)
  const auto* const registers =
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  site.pc = static_cast<std::uintptr_t>(registers[REG_RIP]);
  site.sp = static_cast<std::uintptr_t>(registers[REG_RSP]);
  site.fp = static_cast<std::uintptr_t>(registers[REG_RBP]);
#elif defined(__aarch64__)
  const mcontext_t& machine =
      static_cast<const ucontext_t*>(context)->uc_mcontext;
  site.pc = machine.pc;
  site.sp = machine.sp;
  site.fp = machine.regs[29];
#endif
  return site;
}

void OnCrash(int signal, siginfo_t* info, void* context) {
  const ErrnoGuard guard;
  RunCrashHooks(Describe(signal, *info, context));
  TakeDefaultAction(signal, *info);
}

void InstallHandler(int signal) {
  struct sigaction before = {};
  if (sigaction(signal, nullptr, &before) != 0 ||
      before.sa_handler != SIG_DFL) {
    return;
  }
  struct sigaction action = {};
  action.sa_sigaction = &OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void InstallCrashHook(CrashHook hook, CrashSignals signals) {
  const ErrnoGuard guard;
  for (Slot& slot : g_slots) {
    if (slot.hook.load(std::memory_order_relaxed) != nullptr) continue;
    slot.signals.store(signals, std::memory_order_relaxed);
    slot.hook.store(hook, std::memory_order_relaxed);
    break;
  }
  for (const int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {
    if (Wants(signals, signal)) InstallHandler(signal);
  }
}

void RunCrashHooks(const CrashSite& site) {
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
    if (hook != nullptr &&
        Wants(slot.signals.load(std::memory_order_relaxed), site.signal)) {
      hook(site);
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
  const stack_t stack = {.ss_sp = g_alternate_stack,
                         .ss_flags = 0,
                         .ss_size = sizeof(g_alternate_stack)};
  sigaltstack(&stack, nullptr);
}

}  // namespace hakmem
