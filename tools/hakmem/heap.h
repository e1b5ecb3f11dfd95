// hakmem heap: who holds memory, from the profiles of HAKMEM_HEAP_PROFILE.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kHeapCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_H_
