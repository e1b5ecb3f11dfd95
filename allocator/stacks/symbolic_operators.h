// Whether a loaded library has an operator new or delete that it alone calls:
// it defines one, and is linked symbolic (-Bsymbolic), so that its own calls
// never reach hakmem's. What its `new` allocates may come from malloc and be
// deleted by another module's `delete`, which is hakmem's; neither is at fault.
//
// Owns: nothing. Called by: the core, before it reports that kinds differ, as
// it is slow. Thread-safety: as modules.h says.
#ifndef HAKMEM_ALLOCATOR_STACKS_SYMBOLIC_OPERATORS_H_
#define HAKMEM_ALLOCATOR_STACKS_SYMBOLIC_OPERATORS_H_

namespace hakmem {

// Of the dynamic symbols, by their GNU hash table: a library that hides its
// operators, or has no such table, is not known. hakmem's own module is none.
bool HasSymbolicOperators();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_SYMBOLIC_OPERATORS_H_
