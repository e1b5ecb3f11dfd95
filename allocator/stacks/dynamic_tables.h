// What a module defines, by its dynamic section.
//
// Owns: nothing. Called by: own_operators, startup_modules. Thread-safety: as
// MemoryReader.
#ifndef HAKMEM_ALLOCATOR_STACKS_DYNAMIC_TABLES_H_
#define HAKMEM_ALLOCATOR_STACKS_DYNAMIC_TABLES_H_

#include <cstdint>

#include "allocator/platform/memory_reader.h"

namespace hakmem {

// Where they lie; 0: there is none.
struct DynamicTables {
  static constexpr unsigned kMaxNeeded = 64;

  std::uintptr_t base = 0;  // see ModuleRange
  bool symbolic = false;
  unsigned needed_count = 0;
  std::uintptr_t needed[kMaxNeeded] = {};  // where in `names`
  std::uintptr_t hash = 0;
  std::uintptr_t symbols = 0;
  std::uintptr_t names = 0;

  // Whether FindDefinition can be asked.
  bool complete() const { return hash != 0 && symbols != 0 && names != 0; }
};

// Of the module with this dynamic section.
DynamicTables ReadDynamicTables(MemoryReader& memory, std::uintptr_t base,
                                std::uintptr_t dynamic);

// Where the module's symbol with this short name is; 0: it has none. A module
// without a GNU hash table is not known.
std::uintptr_t FindDefinition(MemoryReader& memory, const DynamicTables& tables,
                              const char* name);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_DYNAMIC_TABLES_H_
