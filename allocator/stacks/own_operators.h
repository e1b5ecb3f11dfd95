// Whether a loaded module has an operator new or delete that it alone calls.
// What its `new` allocates may come from malloc and be deleted by another
// module's `delete`, which is hakmem's; neither is at fault.
//
// Owns: which modules were found to have none. Called by: the core, before it
// reports that kinds differ, as it is slow. Thread-safety: as modules.h says.
#ifndef HAKMEM_ALLOCATOR_STACKS_OWN_OPERATORS_H_
#define HAKMEM_ALLOCATOR_STACKS_OWN_OPERATORS_H_

namespace hakmem {

// Two kinds are known, hakmem's own module apart:
//   symbolic  it exports an operator, and is linked -Bsymbolic (libLLVM)
//   hidden    it holds a C++ runtime (-static-libstdc++) whose operators it
//             does not export (--exclude-libs, a version script, a program)
// A module without a GNU hash table of its dynamic symbols is not known.
bool HasOwnOperators();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_OWN_OPERATORS_H_
