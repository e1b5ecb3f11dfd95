// Call traces as a page: memory over time, and flame graphs of what was live at
// the peak, never freed, temporary and allocated.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_PAGE_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_PAGE_H_

#include <string>
#include <vector>

#include "tools/hakmem/trace_report.h"

namespace hakmem::tools {

// At least one.
std::string TracesAsPage(const std::vector<TraceReport>& reports);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_PAGE_H_
