#include "allocator/base/standard_error.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cerrno>

#include "allocator/base/call_filter.h"
#include "allocator/base/system_call.h"

namespace hakmem {
namespace {

constexpr int kStandardError = 2;

// Written once, at the start.
constinit bool g_is_noted = false;
constinit FileId g_file = {};
// Written at the start and before a filter comes; read by all.
constinit std::atomic<bool> g_is_there{false};
// Written by the first NoteEnd, then by each thread that makes a pause.
constexpr int kNoEnd = -1;
constinit std::atomic<int> g_pauses_left{kNoEnd};

// 0, or the errno. By the call that the loader makes, too, which a filter of
// the start allows.
int LookAt(int fd, struct stat& facts) {
#if defined(__GLIBC__) && __GLIBC_MINOR__ >= 33
  return ErrorOf(SystemCall(SYS_newfstatat, fd, "", &facts, AT_EMPTY_PATH));
#else
  return ErrorOf(SystemCall(SYS_fstat, fd, &facts));
#endif
}

int Identify(int fd, FileId& file) {
  struct stat facts = {};
  const int error_number = LookAt(fd, facts);
  file = {.device = facts.st_dev, .inode = facts.st_ino};
  return error_number;
}

}  // namespace

bool IdentifyFd(int fd, FileId& file) { return Identify(fd, file) == 0; }

void NoteStandardError() {
  g_is_there.store(IdentifyFd(kStandardError, g_file),
                   std::memory_order_relaxed);
  g_is_noted = true;
}

void SettleStandardError() {
  if (!g_is_noted || IsFilterNoted()) return;
  g_is_there.store(StandardError() >= 0, std::memory_order_relaxed);
}

int StandardError() {
  if (!g_is_noted) return kStandardError;
  if (!g_is_there.load(std::memory_order_relaxed)) return -1;
  // A filter may kill for the question.
  if (IsFilterNoted()) return kStandardError;
  FileId now;
  const int error_number = Identify(kStandardError, now);
  // One that refuses to tell lets no file be opened.
  const bool is_same =
      error_number == 0 ? now == g_file : error_number != EBADF;
  return is_same ? kStandardError : -1;
}

int LogInItsPlace() {
  struct stat facts = {};
  if (IsFilterNoted() || LookAt(kStandardError, facts) != 0) {
    return -1;
  }
  const long flags = SystemCall(SYS_fcntl, kStandardError, F_GETFL);
  const bool is_inherited =
      (SystemCall(SYS_fcntl, kStandardError, F_GETFD) & FD_CLOEXEC) == 0;
  const bool is_written_alone = (flags & O_ACCMODE) == O_WRONLY;
  const bool is_log = S_ISCHR(facts.st_mode) ||
                      (is_inherited && is_written_alone &&
                       (S_ISFIFO(facts.st_mode) ||
                        (S_ISREG(facts.st_mode) && (flags & O_APPEND) != 0)));
  return is_log ? kStandardError : -1;
}

void NoteEnd(int pauses) {
  int none = kNoEnd;
  g_pauses_left.compare_exchange_strong(none, pauses,
                                        std::memory_order_relaxed);
}

bool AwaitRoom(int error_number) {
  const int left = g_pauses_left.load(std::memory_order_relaxed);
  if (error_number != EAGAIN || left <= 0) return false;
  // Two threads at once may take the same one.
  g_pauses_left.store(left - 1, std::memory_order_relaxed);
  // By a call that programs leave themselves.
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  constexpr std::uint32_t kWord = 0;
  SystemCall(SYS_futex, &kWord, FUTEX_WAIT_PRIVATE, 0, &kPause);
  return true;
}

}  // namespace hakmem
