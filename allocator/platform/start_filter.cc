#include "allocator/platform/start_filter.h"

#include <cstdint>
#include <string_view>

#include "allocator/base/call_filter.h"
#include "allocator/base/compiler.h"
#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {
namespace {

// By a file: prctl(PR_GET_SECCOMP) is not in every filter. The same file tells
// the process's number, which a thread that opens the library does not have.
HAK_COLD Filter FindFilter() {
  LineReader reader(ProcReader(), "/proc/thread-self/status");
  std::string_view line;
  Filter filter = Filter::kAtStart;
  while (reader.Next(line)) {
    const std::string_view word = TakeWord(line);
    if (word == "Seccomp:") {
      return TakeWord(line) == "0" ? Filter::kNone : Filter::kAtStart;
    }
    // The last one is of the process's own namespace.
    line.remove_prefix(line.rfind('\t') + 1);
    std::uint64_t number = 0;
    if (word == "NStgid:" && ParseDecimal(line, number)) {
      NoteProcessId(static_cast<int>(number));
    }
    // A kernel that has no filters does not name them.
    filter = Filter::kNone;
  }
  return filter;
}

}  // namespace

bool IsFiltered() {
  Filter filter = g_filter.load(std::memory_order_relaxed);
  if (filter == Filter::kUnknown) {
    const Filter found = FindFilter();
    // One may have come meanwhile.
    if (g_filter.compare_exchange_strong(filter, found,
                                         std::memory_order_relaxed)) {
      filter = found;
    }
  }
  return filter != Filter::kNone;
}

}  // namespace hakmem
