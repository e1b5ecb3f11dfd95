// The report for a terminal.
#ifndef HAKMEM_TOOLS_HAKMEM_REPORT_TEXT_H_
#define HAKMEM_TOOLS_HAKMEM_REPORT_TEXT_H_

#include <cstddef>
#include <string>

#include "tools/hakmem/report.h"

namespace hakmem::tools {

inline constexpr std::size_t kTextColumns = 80;

std::string ReportAsText(const Report& report, std::size_t max_sites);

// One cause, with its number in the report.
std::string CauseAsText(const Report& report, const Cause& cause,
                        std::size_t number, std::size_t max_sites);

// One failure on one line, for --follow.
std::string FailureAsText(const Record& failure);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_REPORT_TEXT_H_
