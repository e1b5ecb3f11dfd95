// Listeners to faults, before the signal takes its course, and hooks for the
// last word before the process dies of one.
//
// Owns: the handlers that it installs, and what they stand in for. Called by:
// frontend, when the process starts; AbortProcess. Thread-safety: listeners and
// hooks are added by one thread at a time; they run on whichever thread, in a
// signal handler. Other threads that crash meanwhile wait for the hooks.
//
// Invariants:
//   FT1: a fault that no listener has mended takes the course it would have had
//       without listeners: to the handler that was there before, or to the
//       default action, at the instruction that faulted.
//   FT2: a signal that was ignored stays so, and a handler that the program
//       installs later takes the place of ours.
#ifndef HAKMEM_ALLOCATOR_PROCESS_FAULT_HOOK_H_
#define HAKMEM_ALLOCATOR_PROCESS_FAULT_HOOK_H_

#include <signal.h>

#include <cstdint>

#include "allocator/process/code_place.h"

namespace hakmem {

struct Fault {
  enum class Access : std::uint8_t { kUnknown, kRead, kWrite };

  int signal = 0;
  // Whether the processor told an address: not when somebody has sent the
  // signal, nor for addresses that no memory can have.
  bool has_address = false;
  bool is_protected = false;  // something is mapped there
  std::uintptr_t address = 0;
  Access access = Access::kUnknown;
  // Whether there is room for a report (signals.h).
  bool has_stack = true;
  // False: hakmem itself ends the process (AbortProcess).
  bool is_by_signal = false;
  CodePlace place;  // where the thread was
};

// Of the ucontext_t that a handler of a signal got.
CodePlace PlaceOf(const void* context);

// A set of signals, by number.
constexpr std::uint32_t SignalBit(int signal) { return 1U << signal; }
inline constexpr std::uint32_t kMemoryFaults =
    SignalBit(SIGABRT) | SignalBit(SIGBUS) | SignalBit(SIGSEGV);
inline constexpr std::uint32_t kAllFaults =
    kMemoryFaults | SignalBit(SIGFPE) | SignalBit(SIGILL);

enum class FaultVerdict : std::uint8_t {
  kUnknown,    // later listeners hear of it
  kExplained,  // they need not
  kMended,     // nor need anybody: the instruction is executed again
};

// Must be safe in signal handlers, and touch no more stack than a report needs,
// or 3 KiB where there is no room for one.
using FaultListener = FaultVerdict (*)(const Fault& fault);

enum class OtherHandlers : std::uint8_t {
  kLeaveAlone,   // signals for which the program has one are not listened to
  kStandBefore,  // ours runs first, then theirs
};

// Has `listener` called for these signals of kAllFaults, after those that were
// added before it. Returns the signals that it will hear of.
std::uint32_t AddFaultListener(FaultListener listener, std::uint32_t signals,
                               OtherHandlers others);

using CrashHook = void (*)(const Fault& fault);

// `hook` runs once when a process (this one, or a child) dies of one of these
// signals of kAllFaults, which then does what it would have done. At most two
// hooks; they run in the order in which they were added. Signals for which the
// program has a handler are left alone.
void AddCrashHook(CrashHook hook, std::uint32_t signals);

// For who ends the process without going through a handler: runs the hooks that
// have not run.
void RunCrashHooks(const Fault& fault);

// Gives the calling thread a stack for signal handlers, if it has none, so that
// a hook can run when its own is used up. Other handlers with SA_ONSTACK run
// there, too; one that needs more than 64 KiB faults. For one thread of the
// process.
void UseAlternateStack();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_FAULT_HOOK_H_
