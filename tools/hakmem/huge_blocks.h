// The Huge blocks of a process, counted from outside by its list of them.
#ifndef HAKMEM_TOOLS_HAKMEM_HUGE_BLOCKS_H_
#define HAKMEM_TOOLS_HAKMEM_HUGE_BLOCKS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/superslab/block_tables.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

// Live blocks beyond 64 KiB, or between guard pages.
struct BlockSum {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // that the program may use
  // What they take; 0: nothing of what slabs, spans and Huge blocks have.
  std::uint64_t taken_bytes = 0;
};

// The list is read again, a few times at most, while the process changes it.
// The error is a sentence.
absl::StatusOr<BlockSum> CountHugeBlocks(const ProcessImage& image,
                                         const HugeTables& tables);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HUGE_BLOCKS_H_
