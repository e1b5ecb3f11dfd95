#include "allocator/base/standard_error.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "allocator/base/call_filter.h"
#include "allocator/base/system_call.h"

namespace hakmem {
namespace {

constexpr int kStandardError = 2;

// Written once, at the start.
constinit bool g_is_noted = false;
constinit bool g_was_open = false;
constinit FileId g_file = {};

}  // namespace

bool IdentifyFd(int fd, FileId& file) {
  struct stat facts = {};
  if (SystemCall(SYS_fstat, fd, &facts) != 0) return false;
  file = {.device = facts.st_dev, .inode = facts.st_ino};
  return true;
}

void NoteStandardError() {
  g_was_open = IdentifyFd(kStandardError, g_file);
  g_is_noted = true;
}

int StandardError() {
  if (!g_is_noted) return kStandardError;
  // A filter may kill for the question, or refuse it.
  if (IsFilterNoted()) return g_was_open ? kStandardError : -1;
  FileId now;
  const bool is_same =
      g_was_open && IdentifyFd(kStandardError, now) && now == g_file;
  return is_same ? kStandardError : -1;
}

}  // namespace hakmem
