// Listeners to faults, before the signal takes its course.
//
// Owns: the handlers that it installs, and what they stand in for. Called by:
// frontend, when the process starts. Thread-safety: AddFaultListener by one
// thread at a time; listeners run on whichever thread, in a signal handler.
//
// Invariants:
//   FT1: a fault that no listener has mended takes the course it would have had
//       without listeners: to the handler that was there before, or to the
//       default action, at the instruction that faulted.
//   FT2: a signal that was ignored stays so, and a handler that the program
//       installs later takes the place of ours.
#ifndef HAKMEM_ALLOCATOR_PROCESS_FAULT_HOOK_H_
#define HAKMEM_ALLOCATOR_PROCESS_FAULT_HOOK_H_

#include <cstdint>

#include "allocator/process/code_place.h"

namespace hakmem {

struct Fault {
  enum class Access : std::uint8_t { kUnknown, kRead, kWrite };

  int signal = 0;
  // Whether the processor told an address: not when somebody has sent the
  // signal, nor for addresses that no memory can have.
  bool has_address = false;
  std::uintptr_t address = 0;
  Access access = Access::kUnknown;
  // Whether there is room for a report (signals.h).
  bool has_stack = true;
  // Where the thread was.
  CodePlace place;
};

// Of the ucontext_t that a handler of a signal got.
CodePlace PlaceOf(const void* context);

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

// A set of signals, by number.
constexpr std::uint32_t SignalBit(int signal) { return 1U << signal; }

// Has `listener` called for these signals (of SIGABRT, SIGBUS, SIGFPE, SIGILL,
// SIGSEGV), after those that were added before it. Returns the signals that it
// will hear of.
std::uint32_t AddFaultListener(FaultListener listener, std::uint32_t signals,
                               OtherHandlers others);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_FAULT_HOOK_H_
