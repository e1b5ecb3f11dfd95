#include "allocator/process/output_file.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"

namespace hakmem {
namespace {

// Written at the start; "": not known, or not needed.
constinit char g_start_folder[1024] = "";

}  // namespace

void KeepFolderFor(std::string_view path) {
  if (path.empty() || path == "1" || path[0] == '/') return;
  if (SystemCall(SYS_getcwd, g_start_folder, sizeof(g_start_folder)) <= 0 ||
      g_start_folder[0] != '/') {
    g_start_folder[0] = '\0';
  }
}

bool HasProcessId(std::string_view path) {
  return path.find("%p") != std::string_view::npos;
}

void ExpandPath(std::string_view path, RawPrinter& out) {
  if (!path.starts_with('/') && g_start_folder[0] != '\0') {
    out.Text(g_start_folder).Text("/");
  }
  for (std::size_t at = path.find("%p"); at != std::string_view::npos;
       at = path.find("%p")) {
    out.Text(path.substr(0, at));
    out.SignedDecimal(ProcessId());
    path.remove_prefix(at + 2);
  }
  out.Text(path);
}

int OpenOutput(std::string_view path, FileReaders readers, RawPrinter& out,
               int& error_number, bool again) {
  const std::size_t before = out.text().size();
  ExpandPath(path, out);
  const char* const name = out.c_str() + before;
  const int fd = again ? OpenForReport(name, error_number)
                       : OpenForAppend(name, readers, error_number);
  return fd < 0 ? fd : MoveFdOutOfTheWay(fd);
}

int CopyFdOutOfTheWay(int fd) {
  const ErrnoGuard guard;
  constexpr int kLeast[] = {500, 100, 30};
  for (const int least : kLeast) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (copy >= 0) return copy;
  }
  return -1;
}

int MoveFdOutOfTheWay(int fd) {
  const int moved = CopyFdOutOfTheWay(fd);
  if (moved < 0) return fd;
  CloseFd(fd);
  return moved;
}

bool LockFile(int fd, int tries) {
  const ErrnoGuard guard;
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 10'000'000};
  for (int i = 0; i < tries; ++i) {
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0) return true;
    if (errno != EAGAIN && errno != EACCES) return false;
    SystemCall(SYS_nanosleep, &kPause, nullptr);
  }
  return false;
}

}  // namespace hakmem
