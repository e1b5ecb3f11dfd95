// A last word before a signal that asks the process to end does so.
//
// Owns: the handlers that it installs. Called by: frontend. Thread-safety:
// install at the start; the hook runs in a signal handler, on any thread, and
// that thread may hold any lock.
#ifndef HAKMEM_ALLOCATOR_PROCESS_END_SIGNALS_H_
#define HAKMEM_ALLOCATOR_PROCESS_END_SIGNALS_H_

namespace hakmem {

using EndHook = void (*)(int signal);

// `hook` runs when SIGHUP, SIGTERM or, `with_interrupt`, SIGINT is about to end
// the process, which then dies of it as it would have. Signals for which there
// is a handler, or that are ignored, are left alone; and a handler that the
// program installs later takes the place of ours. At most one hook.
void InstallEndHook(EndHook hook, bool with_interrupt);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_END_SIGNALS_H_
