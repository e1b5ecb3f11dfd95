#include "allocator/reports/report_output.h"

#include "allocator/base/compiler.h"
#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/process/output_file.h"
#include "allocator/process/process.h"
#include "allocator/process/system_log.h"

namespace hakmem {
namespace {

constexpr std::string_view kStderr = "1";
constexpr std::string_view kLog = "syslog";

// Written once, at the start.
constinit std::string_view g_value = kStderr;

int WriteToFile(std::string_view text, RawPrinter& path) {
  ExpandPath(g_value, path);
  int error_number = 0;
  const int fd = OpenForReport(path.c_str(), error_number);
  if (fd < 0) return error_number;
  error_number = TryWriteFd(fd, text);
  CloseFd(fd);
  return error_number;
}

// A frame of its own: reports are made on small stacks, too.
HAK_NOINLINE void WriteElsewhere(std::string_view text) {
  RawPrinter place;
  int error_number = 0;
  if (g_value == kLog || g_value == kStderr) {
    place.Text(kSystemLogSocket);
    error_number = SendToSystemLog(kSystemLogSocket, text);
  } else {
    error_number = WriteToFile(text, place);
  }
  if (error_number == 0) return;
  int fd = StandardError();
  if (fd < 0) fd = LogInItsPlace();
  RawPrinter warning;
  warning.Text("hakmem: warning: HAKMEM_REPORT: cannot write to ");
  warning.Text(place.text()).Text(": ").Text(ErrorWords(error_number));
  WriteFd(fd, warning.Plain().Text(LineEnd().text()).text());
  WriteFd(fd, text);
}

}  // namespace

void SetReportOutput(const char* value) {
  g_value = value[0] == '\0' ? kStderr : value;
  if (g_value != kLog) KeepFolderFor(g_value);
}

void WriteReport(std::string_view text) {
  if (g_value == kStderr) {
    const int fd = StandardError();
    if (fd >= 0) return WriteFd(fd, text);
  }
  WriteElsewhere(text);
}

}  // namespace hakmem
