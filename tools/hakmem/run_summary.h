// What `hakmem run` says when the program has ended.
#ifndef HAKMEM_TOOLS_HAKMEM_RUN_SUMMARY_H_
#define HAKMEM_TOOLS_HAKMEM_RUN_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tools/hakmem/session.h"

namespace hakmem::tools {

// From what processes have written to HAKMEM_STATS; the greatest of each.
struct Peaks {
  std::uint64_t processes = 0;
  std::uint64_t mapped = 0;
  std::string mapped_by;  // the program
  // Allocations that hakmem has served, by process id.
  std::map<std::uint64_t, std::uint64_t> served;
};

// Lines that cannot be read are left out: a program may have been killed.
void AddPeaks(std::string_view statistics, Peaks& peaks);

// A few lines for standard error; "" when nothing happened. `trace` is where
// the failures can be read again.
std::string RunSummary(const Session& session, const Peaks& peaks,
                       std::string_view trace);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RUN_SUMMARY_H_
