// Signals that hakmem is asked to react to, and holding off all others.
//
// Owns: nothing. Called by: frontend. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_PROCESS_SIGNALS_H_
#define HAKMEM_ALLOCATOR_PROCESS_SIGNALS_H_

#include <cstdint>

namespace hakmem {

// Installs a handler for a signal that has the default action. False: it has
// another one, or it is no signal that can be handled.
bool HandleUnusedSignal(int signal, void (*handler)(int signal));

// The kernel's set of a thread's blocked signals: signal s is bit s - 1.
using SignalMask = std::uint64_t;

// Holds off, in the calling thread, all signals that are not of its own making
// and that libc does not need itself; returns what was held off before.
SignalMask HoldSignals();
void RestoreSignals(SignalMask before);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_SIGNALS_H_
