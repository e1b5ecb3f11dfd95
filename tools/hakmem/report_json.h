// The report for programs: docs/failures.md describes its fields.
#ifndef HAKMEM_TOOLS_HAKMEM_REPORT_JSON_H_
#define HAKMEM_TOOLS_HAKMEM_REPORT_JSON_H_

#include <string>

#include "tools/hakmem/report.h"

namespace hakmem::tools {

// One JSON object, with a newline at its end.
std::string ReportAsJson(const Report& report);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_REPORT_JSON_H_
