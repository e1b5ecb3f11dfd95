// `hakmem run`: a program on hakmem, and afterwards what failed.
#ifndef HAKMEM_TOOLS_HAKMEM_RUN_H_
#define HAKMEM_TOOLS_HAKMEM_RUN_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kRunCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RUN_H_
