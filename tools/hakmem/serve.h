// `hakmem serve`: what there is to see of all processes, by HTTP.
#ifndef HAKMEM_TOOLS_HAKMEM_SERVE_H_
#define HAKMEM_TOOLS_HAKMEM_SERVE_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kServeCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SERVE_H_
