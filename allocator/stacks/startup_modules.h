// The modules that the process was started with. The loader never unmaps them,
// so what lies in them can be read without the kernel's help.
//
// Owns: their ranges, from the first search on. Called by: cached_unwinder; by
// process_life once. Thread-safety: any thread, signal handlers included; takes
// no lock, the loader's neither; nothing allocates; errno is left as it was.
//
// Invariants:
//   SM1: a range is the program's, or stood in the loader's list when this
//        library's constructor ran, and this library did before the loader
//        itself. So no dlopen had brought it: what that brings comes last.
#ifndef HAKMEM_ALLOCATOR_STACKS_STARTUP_MODULES_H_
#define HAKMEM_ALLOCATOR_STACKS_STARTUP_MODULES_H_

#include <cstdint>

#include "allocator/stacks/modules.h"

namespace hakmem {

// Counts the modules there are. For the library's constructor: the loader calls
// it, so that its list is at rest.
void NoteStartupModules();

// False: `address` is in no such module, or in one beyond the first 128; or
// nothing is noted yet; or another thread is just reading the list.
bool FindStartupModule(std::uintptr_t address, ModuleRange& range);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_STARTUP_MODULES_H_
