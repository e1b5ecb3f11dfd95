#include "allocator/process/descriptor.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/process/process.h"

namespace hakmem {

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
