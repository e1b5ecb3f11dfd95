// hakmem trace: what the calls in a trace of HAKMEM_TRACE say.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kTraceCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_H_
