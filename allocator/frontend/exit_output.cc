#include "allocator/frontend/exit_output.h"

#include <cstddef>
#include <cstring>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/process/descriptor.h"
#include "allocator/process/trace_path.h"

namespace hakmem {
namespace {

constinit int g_kept_fd = -1;
// The program may have closed the copy and use its number for something else.
constinit FileId g_kept_file = {};

}  // namespace

void KeepStderr() {
  g_kept_fd = CopyFdOutOfTheWay(kStderrFd);
  if (!IdentifyFd(g_kept_fd, g_kept_file)) g_kept_fd = -1;
}

int ExitStderr() {
  FileId now;
  if (IdentifyFd(kStderrFd, now)) return kStderrFd;
  return IdentifyFd(g_kept_fd, now) && now == g_kept_file ? g_kept_fd : -1;
}

int OpenExitOutput(const char* option, const char* value, FileReaders readers) {
  if (std::strcmp(value, "1") == 0) return ExitStderr();
  // The warning, which ends in the path: a handler of a signal opens outputs,
  // too, where programs often have 8 KiB for handlers.
  RawPrinter warning;
  warning.Text("hakmem: warning: ").Text(option).Text(": cannot open ");
  const std::size_t before = warning.text().size();
  ExpandPath(value, warning);
  int error_number = 0;
  const int fd = OpenForAppend(warning.c_str() + before, readers, error_number);
  if (fd >= 0) {
    // Processes that end together would mix their lines. If one is stopped
    // while it writes, they are mixed all the same, after a second.
    LockFile(fd);
    return fd;
  }
  warning.Text(": ").Text(ErrorWords(error_number));
  WriteFd(ExitStderr(), warning.Text("\n").text());
  return -1;
}

void CloseExitOutput(int fd) {
  if (fd != kStderrFd && fd != g_kept_fd) CloseFd(fd);
}

}  // namespace hakmem
