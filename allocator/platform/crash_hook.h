// A last word before the process dies of its own fault.
//
// Owns: the handlers that it installs. Called by: frontend, AbortProcess.
// Thread-safety: install once; the hook runs on whichever thread, mostly in a
// signal handler.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_CRASH_HOOK_H_
#define HAKMEM_ALLOCATOR_PLATFORM_CRASH_HOOK_H_

namespace hakmem {

// `hook` runs once when the process dies of SIGABRT, SIGBUS, SIGFPE, SIGILL or
// SIGSEGV, which then does what it would have done. Signals for which there is
// a handler, or that are ignored, are left alone; and a handler that the
// program installs later takes the place of ours.
void InstallCrashHook(void (*hook)(int signal));

// For who ends the process without going through a handler: runs the hook, if
// there is one that has not run.
void RunCrashHook(int signal);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_CRASH_HOOK_H_
