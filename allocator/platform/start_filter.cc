#include "allocator/platform/start_filter.h"

#include <string_view>

#include "allocator/base/call_filter.h"
#include "allocator/base/compiler.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {
namespace {

// By a file: prctl(PR_GET_SECCOMP) is not in every filter.
HAK_COLD Filter FindFilter() {
  LineReader reader(ProcReader(), "/proc/self/status");
  std::string_view line;
  Filter filter = Filter::kAtStart;
  while (reader.Next(line)) {
    if (TakeWord(line) == "Seccomp:") {
      return TakeWord(line) == "0" ? Filter::kNone : Filter::kAtStart;
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
