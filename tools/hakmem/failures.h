// `hakmem failures`: the failed calls that a process keeps, seen from outside.
#ifndef HAKMEM_TOOLS_HAKMEM_FAILURES_H_
#define HAKMEM_TOOLS_HAKMEM_FAILURES_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kFailuresCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FAILURES_H_
