// hakmem stats: where the memory of a process is, read from outside.
#ifndef HAKMEM_TOOLS_HAKMEM_STATS_H_
#define HAKMEM_TOOLS_HAKMEM_STATS_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kStatsCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_STATS_H_
