// Where reports go: standard error, a file, or the system's log.
//
// Owns: the choice (HAKMEM_REPORT). Called by: ReportText; frontend, at the
// start. Thread-safety: any thread, signal handlers included; nothing
// allocates; errno is left as it was.
//
// A report that cannot be written where it should goes to standard error, and a
// line before it says why. Where the program has put another file in the place
// of standard error, it goes to the system's log.
#ifndef HAKMEM_ALLOCATOR_REPORTS_REPORT_OUTPUT_H_
#define HAKMEM_ALLOCATOR_REPORTS_REPORT_OUTPUT_H_

#include <string_view>

namespace hakmem {

// Once, at the start. "" or "1": standard error, the default; "syslog"; else a
// file to append to, in whose path %p is the process that reports. A path that
// does not begin with / is one from where the process is now, as daemons go
// elsewhere. `value` must stay.
void SetReportOutput(const char* value);

void WriteReport(std::string_view text);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_REPORT_OUTPUT_H_
