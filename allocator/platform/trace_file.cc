#include "allocator/platform/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "allocator/base/raw_print.h"
#include "allocator/platform/errno_guard.h"

namespace hakmem {
namespace {

// Out of the way of programs that give small numbers a meaning.
constexpr int kLeastFd = 512;
constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;

int OpenAt(const char* path, int flags) {
  long fd = -1;
  do {
    fd = syscall(SYS_openat, AT_FDCWD, path, flags, 0644);
  } while (fd < 0 && errno == EINTR);
  return static_cast<int>(fd);
}

int MoveUp(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kLeastFd);
  if (moved < 0) return fd;
  syscall(SYS_close, fd);
  return moved;
}

}  // namespace

int TraceFile::Open(const char* path) {
  const ErrnoGuard guard;
  int fd = OpenAt(path, kFlags | O_CREAT);
  if (fd < 0) return errno;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    syscall(SYS_close, fd);
    return EWOULDBLOCK;
  }
  struct stat status;
  if (fstat(fd, &status) != 0 ||
      (S_ISREG(status.st_mode) && ftruncate(fd, 0) != 0)) {
    const int error = errno;
    syscall(SYS_close, fd);
    return error;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  fd_ = MoveUp(fd);
  RawPrinter link;
  link.Text("/proc/self/fd/").SignedDecimal(fd_);
  const ssize_t length =
      readlink(link.c_str(), full_path_, sizeof(full_path_) - 1);
  full_path_[length < 0 ? 0 : length] = '\0';
  return 0;
}

bool TraceFile::IsOurs(int fd) const {
  struct stat status;
  return fstat(fd, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

bool TraceFile::Reopen() {
  const int fd = OpenAt(full_path_, kFlags);
  if (fd < 0) return false;
  if (!IsOurs(fd)) {
    syscall(SYS_close, fd);
    return false;
  }
  flock(fd, LOCK_EX | LOCK_NB);
  fd_ = MoveUp(fd);
  return true;
}

int TraceFile::Append(std::span<const std::uint8_t> bytes) {
  const ErrnoGuard guard;
  // The program may have closed all descriptors, as daemons do, and may use
  // the number for a file of its own.
  if (!IsOurs(fd_) && !Reopen()) {
    fd_ = -1;
    return EBADF;
  }
  while (!bytes.empty()) {
    const long written = syscall(SYS_write, fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

void TraceFile::Close() {
  const ErrnoGuard guard;
  if (fd_ >= 0 && IsOurs(fd_)) syscall(SYS_close, fd_);
  fd_ = -1;
}

}  // namespace hakmem
