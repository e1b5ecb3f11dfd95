// The subcommands that have a process do something: purge and option.
#ifndef HAKMEM_TOOLS_HAKMEM_CONTROL_H_
#define HAKMEM_TOOLS_HAKMEM_CONTROL_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kPurgeCommand;
extern const Command kOptionCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CONTROL_H_
