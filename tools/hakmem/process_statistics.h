// The statistics of a process that runs, or of its core file, read from
// outside: from the counters that hakmem_statistics_tables lists
// (docs/process_tables.md).
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_STATISTICS_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/base/raw_print.h"
#include "allocator/statistics/statistics.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

struct ProcessStatistics {
  // Without its variant and version, which are below.
  Statistics statistics;
  std::string variant;
  std::string version;
  std::uint64_t pid = 0;
  std::string program;
  std::optional<std::uint64_t> resident_bytes;  // of a process, as of now
  std::vector<MemoryRange> windows;             // the first one has blocks
};

// What the kernel counts of the process's memory (RSS); none: it has ended.
std::optional<std::uint64_t> ResidentBytes(std::uint64_t pid);

// A sink that appends to a text.
inline LineSink AppendTo(std::string& text) {
  return {.write =
              [](void* context, std::string_view lines) {
                static_cast<std::string*>(context)->append(lines);
                return true;
              },
          .context = &text};
}

// The error is a sentence.
absl::StatusOr<ProcessStatistics> ReadStatistics(const ProcessImage& image);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_STATISTICS_H_
