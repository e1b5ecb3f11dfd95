#include "allocator/base/check.h"

#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>

#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/standard_error.h"
#include "allocator/base/system_call.h"

namespace hakmem {

void CheckFailed(const char* expression, std::uint64_t left,
                 std::uint64_t right, const char* file, int line) {
  RawPrinter out;
  out.Text("hakmem: fatal: internal check failed: ").Text(expression);
  out.Text(" (").Decimal(left).Text(" vs ").Decimal(right).Text(") at ");
  out.Text(file).Text(":").SignedDecimal(line).Text(LineEnd().text());
  NoteEnd();
  int error_number = 0;
  do {  // There is no layer below to ask.
    error_number = ErrorOf(
        SystemCall(SYS_write, StandardError(), out.c_str(), out.text().size()));
  } while (error_number == EINTR || AwaitRoom(error_number));
  if (t_is_strict) __builtin_trap();  // as AbortProcess
  std::abort();
}

}  // namespace hakmem
