// Reports of misuse and crashes as the library wrote them (docs/misuse.md),
// with names, lines and inlined calls: it has the time that a process that has
// gone wrong has not.
#ifndef HAKMEM_TOOLS_HAKMEM_RUN_REPORTS_H_
#define HAKMEM_TOOLS_HAKMEM_RUN_REPORTS_H_

#include <string>
#include <string_view>

#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

// Each line of a stack becomes one for each function there; all else stays.
std::string CompletedReports(std::string_view text, SymbolizerOptions options);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RUN_REPORTS_H_
