// The report as one page that needs nothing else: no script, no font, no
// network. It follows the reader's light or dark setting, fits a phone and
// prints.
#ifndef HAKMEM_TOOLS_HAKMEM_REPORT_HTML_H_
#define HAKMEM_TOOLS_HAKMEM_REPORT_HTML_H_

#include <string>

#include "tools/hakmem/report.h"

namespace hakmem::tools {

std::string ReportAsHtml(const Report& report);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_REPORT_HTML_H_
