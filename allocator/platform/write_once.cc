#include "allocator/platform/write_once.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "allocator/platform/errno_guard.h"

namespace hakmem {
namespace {

// Keeps a write to a pipe without readers, or beyond the longest that a file
// may be (RLIMIT_FSIZE), from ending the program: SIGPIPE and SIGXFSZ are held
// back meanwhile, and taken away if the write was what raised them.
class WriteSignalHolder {
 public:
  WriteSignalHolder() {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    sigemptyset(&pending_);
    held_ = pthread_sigmask(SIG_BLOCK, &both, &before_) == 0;
    // Where the program lets them come, none can be waiting.
    if (held_ && (sigismember(&before_, SIGPIPE) == 1 ||
                  sigismember(&before_, SIGXFSZ) == 1)) {
      sigpending(&pending_);
    }
  }
  ~WriteSignalHolder() {
    if (held_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalHolder(const WriteSignalHolder&) = delete;
  WriteSignalHolder& operator=(const WriteSignalHolder&) = delete;

  void TakeAway(int signal) const {
    if (!held_ || sigismember(&pending_, signal) == 1) return;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    constexpr timespec kNow = {};
    // By number: sigtimedwait() is a cancellation point.
    syscall(SYS_rt_sigtimedwait, &only, nullptr, &kNow, kKernelSignalBytes);
  }

 private:
  static constexpr std::size_t kKernelSignalBytes = _NSIG / 8;
  sigset_t before_;
  sigset_t pending_;  // before the write
  bool held_ = false;
};

}  // namespace

std::size_t WriteOnce(int fd, std::string_view text, int& error_number) {
  const ErrnoGuard guard;
  const WriteSignalHolder holder;
  long written = 0;
  do {
    written = syscall(SYS_write, fd, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  error_number = written < 0 ? errno : EIO;
  if (error_number == EPIPE) holder.TakeAway(SIGPIPE);
  if (error_number == EFBIG) holder.TakeAway(SIGXFSZ);
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

}  // namespace hakmem
