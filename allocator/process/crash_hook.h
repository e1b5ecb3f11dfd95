// A last word before the process dies of its own fault.
//
// Owns: the handlers that it installs. Called by: frontend, AbortProcess.
// Thread-safety: install at the start; the hooks run on whichever thread,
// mostly in a signal handler. Other threads that crash meanwhile wait for them.
#ifndef HAKMEM_ALLOCATOR_PROCESS_CRASH_HOOK_H_
#define HAKMEM_ALLOCATOR_PROCESS_CRASH_HOOK_H_

#include <cstdint>

namespace hakmem {

// Where and how a thread crashes.
struct CrashSite {
  int signal = 0;
  // The access that was refused, if it was one.
  bool has_address = false;
  bool is_protected = false;  // something is mapped there
  std::uintptr_t address = 0;
  bool has_stack = true;  // there is room for a report (signals.h)
  // Null: hakmem itself ends the process (AbortProcess).
  const void* context = nullptr;  // a ucontext_t
  std::uintptr_t pc = 0;
  std::uintptr_t sp = 0;
  std::uintptr_t fp = 0;
};

using CrashHook = void (*)(const CrashSite& site);

// For SIGABRT, SIGBUS and SIGSEGV, or for SIGFPE and SIGILL, too.
enum class CrashSignals : std::uint8_t { kMemory, kAll };

// `hook` runs once when a process (this one, or a child) dies of one of the
// signals, which then does what it would have done. At most two hooks; they run
// in the order in which they were installed. Signals for which there is a
// handler, or that are ignored, are left alone; and a handler that the program
// installs later takes the place of ours.
void InstallCrashHook(CrashHook hook, CrashSignals signals);

// For who ends the process without going through a handler: runs the hooks that
// have not run.
void RunCrashHooks(const CrashSite& site);

// Gives the calling thread a stack for signal handlers, if it has none, so that
// a hook can run when its own is used up. For one thread of the process.
void UseAlternateStack();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_CRASH_HOOK_H_
