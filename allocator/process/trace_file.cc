#include "allocator/process/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/platform/write_once.h"
#include "allocator/process/output_file.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Whatever is there by now is not waited for.
int OpenExisting(const char* path, int access) {
  constexpr int kFlags = O_APPEND | O_NOFOLLOW | O_NONBLOCK;
  int ignored = 0;
  return OpenFile(path, access | kFlags, 0, ignored);
}

// Whether nothing is lost that is not a trace of this user's.
bool MayEmpty(const char* path, const struct stat& status,
              std::span<const std::uint8_t> magic) {
  constexpr std::size_t kMaxMagicBytes = 16;
  if (status.st_size == 0) return true;
  if (status.st_uid != geteuid()) return false;
  const int fd = OpenExisting(path, O_RDONLY);
  if (fd < 0) return false;
  std::uint8_t start[kMaxMagicBytes];
  struct stat read;
  const bool is_trace = fstat(fd, &read) == 0 && read.st_dev == status.st_dev &&
                        read.st_ino == status.st_ino &&
                        SystemCall(SYS_pread64, fd, start, magic.size(), 0) ==
                            static_cast<long>(magic.size()) &&
                        std::memcmp(start, magic.data(), magic.size()) == 0;
  CloseFd(fd);
  return is_trace;
}

// Makes an open file fit for a trace. Returns 0 or the errno.
int Prepare(int fd, const char* path, std::span<const std::uint8_t> magic,
            struct stat& status) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return EWOULDBLOCK;
  }
  if (fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return 0;
  if (!MayEmpty(path, status, magic)) return EEXIST;
  return ftruncate(fd, 0) != 0 ? errno : 0;
}

}  // namespace

int TraceFile::Open(const char* path, std::span<const std::uint8_t> magic) {
  const ErrnoGuard guard;
  int error = 0;
  const int fd = OpenForAppend(path, FileReaders::kOwner, error);
  if (fd < 0) return error;
  struct stat status;
  error = Prepare(fd, path, magic, status);
  if (error != 0) {
    CloseFd(fd);
    return error;
  }
  file_ = {.device = status.st_dev, .inode = status.st_ino};
  fd_ = MoveFdOutOfTheWay(fd);
  full_path_[std::string_view(path).copy(full_path_, kPathBytes - 1)] = '\0';
  return 0;
}

bool TraceFile::Reopen() {
  const int fd = OpenExisting(full_path_, O_WRONLY);
  if (fd < 0) return false;
  if (!IsFile(fd, file_)) {
    CloseFd(fd);
    return false;
  }
  // As it was: what is written waits for a reader that is slow.
  SystemCall(SYS_fcntl, fd, F_SETFL, O_APPEND);
  flock(fd, LOCK_EX | LOCK_NB);
  fd_ = MoveFdOutOfTheWay(fd);
  return true;
}

int TraceFile::Append(std::span<const std::uint8_t> bytes) {
  const ErrnoGuard guard;
  // The program may have closed all descriptors, as daemons do, and may use
  // the number for a file of its own.
  if (!IsFile(fd_, file_) && !Reopen()) {
    fd_ = -1;
    return EBADF;
  }
  return TryWriteFd(
      fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void TraceFile::Close() {
  const ErrnoGuard guard;
  if (fd_ >= 0 && IsFile(fd_, file_)) CloseFd(fd_);
  fd_ = -1;
}

}  // namespace hakmem
