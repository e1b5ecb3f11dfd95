// Signals that hakmem is asked to react to.
//
// Owns: nothing. Called by: frontend, at the start. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_SIGNALS_H_
#define HAKMEM_ALLOCATOR_PLATFORM_SIGNALS_H_

namespace hakmem {

// Installs a handler for a signal that has the default action. False: it has
// another one, or it is no signal that can be handled.
bool HandleUnusedSignal(int signal, void (*handler)(int signal));

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_SIGNALS_H_
