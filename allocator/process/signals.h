// Holding off signals, and a last word before one that asks the process to end.
//
// Owns: the handlers of InstallEndHook. Called by: core, frontend.
// Thread-safety: any thread; InstallEndHook at the start.
#ifndef HAKMEM_ALLOCATOR_PROCESS_SIGNALS_H_
#define HAKMEM_ALLOCATOR_PROCESS_SIGNALS_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

// The kernel's set of a thread's blocked signals: signal s is bit s - 1.
using SignalMask = std::uint64_t;

// Holds off, in the calling thread, all signals that are not of its own making
// and that libc does not need itself; returns what was held off before.
SignalMask HoldSignals();
void RestoreSignals(SignalMask before);

// For the end of the process: the signal has its default action, and comes.
void SetDefaultAction(int signal);
void UnblockSignal(int signal);

using EndHook = void (*)(int signal);

// `hook` runs in a signal handler, on any thread, which may hold any lock, when
// SIGHUP, SIGTERM or, `with_interrupt`, SIGINT is about to end the process,
// which then dies of it as it would have. Signals for which there is a handler,
// or that are ignored, are left alone; and a handler that the program installs
// later takes the place of ours. At most one hook.
void InstallEndHook(EndHook hook, bool with_interrupt);

// What a report needs of the stack that it is made on, below the handler of a
// signal. A stack for handlers of 16 KiB has as much (of 20 KiB on ARM64, whose
// kernel takes 4 KiB more).
inline constexpr std::size_t kReportStackBytes = 12 * 1024;

// Whether a handler with this ucontext_t that runs on the thread's stack for
// handlers (sigaltstack) has that much of it left. Others have the thread's
// own.
bool HasReportStack(const void* context);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_SIGNALS_H_
