// What is left to a handler of a fault that has had its say.
//
// Owns: nothing. Called by: crash_hook, fault_hook. Thread-safety: any thread,
// in a handler of the signal, which is held off until that returns.
#ifndef HAKMEM_ALLOCATOR_PROCESS_DEFAULT_ACTION_H_
#define HAKMEM_ALLOCATOR_PROCESS_DEFAULT_ACTION_H_

#include <signal.h>

namespace hakmem {

// Has the signal do, once the handler returns, what it would have done without
// one.
void TakeDefaultAction(int signal, const siginfo_t& info);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_DEFAULT_ACTION_H_
