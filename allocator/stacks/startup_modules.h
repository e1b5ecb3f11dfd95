// The modules around running functions, where their memory can be read without
// the kernel's help.
//
// Owns: the ranges of the modules that the process was started with, and where
// libc's own search is. Called by: cached_unwinder; by process_life once.
// Thread-safety: any thread, signal handlers included; takes no lock, the
// loader's neither; nothing allocates; errno is left as it was.
//
// Invariants:
//   SM1: a startup module is the program, or stood in the loader's list when
//        this library's constructor ran, and this library did before the loader
//        itself. So no dlopen had brought it: what that brings comes last. The
//        loader never unmaps it.
//   SM2: of other modules nothing is read but by who says that a function of
//        theirs runs. A program that is right does not unmap that.
#ifndef HAKMEM_ALLOCATOR_STACKS_STARTUP_MODULES_H_
#define HAKMEM_ALLOCATOR_STACKS_STARTUP_MODULES_H_

#include <cstdint>

#include "allocator/stacks/modules.h"

namespace hakmem {

// Reads what the loader has, and what own_stack.h wants. For the library's
// constructor: the loader calls it, so that its list is at rest.
void NoteStartupModules();

// Where libc itself defines a short name, whatever stands before it: found by
// its tables, which allocates nothing, as dlopen does. 0: that cannot be known.
// For the library's constructor and later.
std::uintptr_t FindInLibc(const char* name);

// False: `address` is in no such module, or in one beyond the first 128; or
// nothing is noted yet.
bool FindStartupModule(std::uintptr_t address, ModuleRange& range);

// The startup module, or on glibc 2.35 and later any module, around `address`.
// `runs`: it is in a function that runs now. Of modules that dlopen brought
// the range is empty if it is not (SM2).
bool FindModuleDirectly(std::uintptr_t address, bool runs, ModuleRange& range);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_STARTUP_MODULES_H_
