// prctl, as far as a program's library reaches it: sees a filter of system
// calls come (base/call_filter.h). libseccomp, too, calls it before its
// filter holds, to give up new privileges.

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>

#include "allocator/base/call_filter.h"
#include "allocator/base/compiler.h"
#include "allocator/base/standard_error.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/libc_functions.h"

namespace hakmem {
namespace {

// As the C library has declared it: they differ.
constexpr bool kPrctlIsNoexcept = noexcept(prctl(0));

}  // namespace
}  // namespace hakmem

// Weak: in a program without a dynamic linker, libc's own may stand beside it.
extern "C" [[gnu::weak]] HAK_EXPORT int prctl(int option, ...) noexcept(
    hakmem::kPrctlIsNoexcept) {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) {
    hakmem::SettleStandardError();
    hakmem::NoteFilter();
  }
  const bool is_strict =
      option == PR_SET_SECCOMP && words[0] == SECCOMP_MODE_STRICT;
  if (is_strict) hakmem::SetStrictMode(true);
  const long answer = hakmem::SystemCall(SYS_prctl, option, words[0], words[1],
                                         words[2], words[3]);
  const int error_number = hakmem::ErrorOf(answer);
  if (error_number == 0) return static_cast<int>(answer);
  if (is_strict) hakmem::SetStrictMode(false);
  errno = error_number;
  return -1;
}
