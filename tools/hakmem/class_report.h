// The count of a process's blocks by size class, as text and as JSON.
#ifndef HAKMEM_TOOLS_HAKMEM_CLASS_REPORT_H_
#define HAKMEM_TOOLS_HAKMEM_CLASS_REPORT_H_

#include <string>

#include "tools/hakmem/process_blocks.h"

namespace hakmem::tools {

std::string ClassesAsText(const ProcessBlocks& blocks);
std::string ClassesAsJson(const ProcessBlocks& blocks);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CLASS_REPORT_H_
