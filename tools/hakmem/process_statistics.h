// The statistics of a process that runs, or of its core file, read from
// outside: from the counters that hakmem_statistics_tables lists
// (docs/statistics.md).
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_STATISTICS_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/statistics/statistics.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

struct ProcessStatistics {
  // Without its variant and version, which are below.
  Statistics statistics;
  std::string variant;
  std::string version;
  std::uint64_t pid = 0;
  std::string program;
  std::optional<std::uint64_t> resident_bytes;  // of a process, as of now
};

// The error is a sentence.
absl::StatusOr<ProcessStatistics> ReadStatistics(const ProcessImage& image);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_STATISTICS_H_
