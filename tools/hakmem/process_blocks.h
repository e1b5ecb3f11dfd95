// All blocks of a process that runs, or of its core file, counted from outside:
// by the tables that hakmem_block_tables leads to (docs/process_tables.md).
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_BLOCKS_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_BLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/statistics/statistics.h"
#include "tools/hakmem/free_blocks.h"
#include "tools/hakmem/huge_blocks.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

struct ProcessBlocks {
  std::uint64_t pid = 0;
  std::string program;
  std::string version;
  std::string variant;
  std::vector<ClassStatistics> classes;
  // The free blocks of each class.
  std::vector<FreeBlocks> free;
  BlockSum spans;
  BlockSum huge;
  BlockSum guarded;

  // Of all of them.
  BlockSum Total() const;
};

// The error is a sentence.
absl::StatusOr<ProcessBlocks> CountBlocks(const ProcessImage& image);

std::string ClassesAsText(const ProcessBlocks& blocks);
std::string ClassesAsJson(const ProcessBlocks& blocks);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_BLOCKS_H_
