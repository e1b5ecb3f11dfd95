#include "allocator/frontend/exit_output.h"

#include <cstring>

#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/process/output_file.h"

namespace hakmem {
namespace {

constinit int g_kept_fd = -1;
// The program may have closed the copy and use its number for something else.
constinit FileId g_kept_file = {};

void BeginWarning(const char* option, const char* what, RawPrinter& warning) {
  warning.Text("hakmem: warning: ").Text(option).Text(": ").Text(what);
}

void EndWarning(int error_number, RawPrinter& warning) {
  warning.Plain().Text(": ").Text(ErrorWords(error_number));
  warning.Text(LineEnd().text());
  WriteFd(ExitStderr(), warning.text());
}

}  // namespace

void KeepStderr() {
  g_kept_fd = CopyFdOutOfTheWay(StandardError());
  if (!IdentifyFd(g_kept_fd, g_kept_file)) g_kept_fd = -1;
}

int ExitStderr() {
  const int fd = StandardError();
  if (fd >= 0) return fd;
  return IsFile(g_kept_fd, g_kept_file) ? g_kept_fd : -1;
}

int OpenExitOutput(const char* option, const char* value, FileReaders readers) {
  if (std::strcmp(value, "1") == 0) return ExitStderr();
  // The warning, which ends in the path: a handler of a signal opens outputs,
  // too, where programs often have 8 KiB for handlers.
  RawPrinter warning;
  BeginWarning(option, "cannot open ", warning);
  int error_number = 0;
  // Where the program has closed standard error, a file gets its number first,
  // and would get with it what others write there.
  const int fd = OpenOutput(value, readers, warning, error_number);
  if (fd >= 0) {
    // Processes that end together would mix their lines. If one is stopped
    // while it writes, they are mixed all the same, after a second.
    LockFile(fd);
    return fd;
  }
  EndWarning(error_number, warning);
  return -1;
}

void CloseExitOutput(const char* option, const char* value, int fd,
                     int error_number) {
  if (std::strcmp(value, "1") == 0) return;
  CloseFd(fd);
  if (error_number == 0) return;
  RawPrinter warning;
  BeginWarning(option, "cannot write to ", warning);
  ExpandPath(value, warning);
  EndWarning(error_number, warning);
}

}  // namespace hakmem
