// hakmem watch: keeps heap profiles of a process, to see later what has grown.
#ifndef HAKMEM_TOOLS_HAKMEM_WATCH_H_
#define HAKMEM_TOOLS_HAKMEM_WATCH_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kWatchCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_WATCH_H_
