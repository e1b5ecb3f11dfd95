#include "allocator/platform/write_once.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <cerrno>
#include <cstdint>

#include "allocator/base/system_call.h"

namespace hakmem {
namespace {

// The kernel's set of signals: signal s is bit s - 1.
using Mask = std::uint64_t;
constexpr Mask BitOf(int signal) { return Mask{1} << (signal - 1); }

// Keeps a write to a pipe without readers, or beyond the longest that a file
// may be (RLIMIT_FSIZE), from ending the program: SIGPIPE and SIGXFSZ are held
// back meanwhile, and taken away if the write was what raised them.
class WriteSignalHolder {
 public:
  WriteSignalHolder() {
    constexpr Mask kBoth = BitOf(SIGPIPE) | BitOf(SIGXFSZ);
    held_ = SystemCall(SYS_rt_sigprocmask, SIG_BLOCK, &kBoth, &before_,
                       sizeof(Mask)) == 0;
    // Where the program lets them come, none can be waiting.
    if (held_ && (before_ & kBoth) != 0) {
      SystemCall(SYS_rt_sigpending, &pending_, sizeof(Mask));
    }
  }
  ~WriteSignalHolder() {
    if (!held_) return;
    SystemCall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, 0, sizeof(Mask));
  }
  WriteSignalHolder(const WriteSignalHolder&) = delete;
  WriteSignalHolder& operator=(const WriteSignalHolder&) = delete;

  void TakeAway(int signal) const {
    const Mask only = BitOf(signal);
    if (!held_ || (pending_ & only) != 0) return;
    constexpr timespec kNow = {};
    SystemCall(SYS_rt_sigtimedwait, &only, 0, &kNow, sizeof(Mask));
  }

 private:
  Mask before_ = 0;
  Mask pending_ = 0;  // before the write
  bool held_ = false;
};

}  // namespace

int OpenFile(const char* path, int flags, unsigned mode, int& error_number) {
  flags |= O_CLOEXEC | O_NOCTTY;
  long fd = -1;
  do {
    fd = SystemCall(SYS_openat, AT_FDCWD, path, flags, mode);
  } while (fd == -EINTR);
  error_number = ErrorOf(fd);
  return error_number == 0 ? static_cast<int>(fd) : -1;
}

std::size_t WriteOnce(int fd, std::string_view text, int& error_number) {
  const WriteSignalHolder holder;
  long written = 0;
  do {
    written = SystemCall(SYS_write, fd, text.data(), text.size());
  } while (written == -EINTR);
  error_number = written < 0 ? ErrorOf(written) : EIO;
  if (error_number == EPIPE) holder.TakeAway(SIGPIPE);
  if (error_number == EFBIG) holder.TakeAway(SIGXFSZ);
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

}  // namespace hakmem
