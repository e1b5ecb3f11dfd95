// Names of functions, read from a module's file (.symtab, else .dynsym).
//
// Owns: nothing. Called by: reports at the end of a process, as it is slow.
// Thread-safety: any thread, signal handlers included; nothing allocates; errno
// is left as it was.
//
// Invariants:
//   SY1: no more than kMaxSymbols entries are read of a table.
//   SY2: a file that is no longer the one that was loaded gives no names.
#ifndef HAKMEM_ALLOCATOR_STACKS_SYMBOLS_H_
#define HAKMEM_ALLOCATOR_STACKS_SYMBOLS_H_

#include <cstdint>

#include "allocator/stacks/modules.h"

namespace hakmem {

struct Symbol {
  // As the linker knows it; what is too long is cut.
  char name[160];
  std::uintptr_t offset;  // of the address in the function
};

// The function of `module` that holds `address`. False: nobody knows.
bool FindSymbol(const ModuleOf& module, std::uintptr_t address, Symbol& symbol);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_SYMBOLS_H_
