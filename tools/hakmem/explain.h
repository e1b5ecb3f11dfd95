// `hakmem explain`: reads failure traces and says what happened and what to do.
#ifndef HAKMEM_TOOLS_HAKMEM_EXPLAIN_H_
#define HAKMEM_TOOLS_HAKMEM_EXPLAIN_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kExplainCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_EXPLAIN_H_
