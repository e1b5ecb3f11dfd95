// hakmem top: the processes that run on hakmem, again and again.
#ifndef HAKMEM_TOOLS_HAKMEM_TOP_H_
#define HAKMEM_TOOLS_HAKMEM_TOP_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kTopCommand;

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TOP_H_
