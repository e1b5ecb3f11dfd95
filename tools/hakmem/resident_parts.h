// Where the memory of a process is that the kernel counts as resident: the
// parts of its RSS, which add up to it.
#ifndef HAKMEM_TOOLS_HAKMEM_RESIDENT_PARTS_H_
#define HAKMEM_TOOLS_HAKMEM_RESIDENT_PARTS_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_statistics.h"

namespace hakmem::tools {

// Invariants:
//   RP1: live + holes + cached + unowned - untouched = blocks.
//   RP2: blocks + tables + stacks + files + others = resident.
struct ResidentParts {
  // By hakmem's counters: bytes of blocks, touched or not.
  std::uint64_t live_bytes = 0;
  std::uint64_t hole_bytes = 0;  // the rest of their slabs and spans
  std::uint64_t cached_bytes = 0;
  // The part of these three that is not in memory.
  std::uint64_t untouched_bytes = 0;
  // In memory and in none of the three.
  std::uint64_t unowned_bytes = 0;
  // By the kernel's count.
  std::uint64_t block_bytes = 0;
  std::uint64_t table_bytes = 0;  // and of guarded blocks
  std::uint64_t stack_bytes = 0;
  std::uint64_t file_bytes = 0;  // and of shared memory
  std::uint64_t other_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t huge_page_bytes = 0;  // of blocks and tables
};

struct ResidentRow {
  const char* key;
  const char* words;
  std::uint64_t ResidentParts::* value;
  int sign;  // with which it adds up; 0: a sum, or a part of others
};

// As they are told, RSS last.
std::span<const ResidentRow> ResidentRows();

// Of a process that runs. The kernel walks over all its pages, and calls that
// map memory wait meanwhile. The error is a sentence.
absl::StatusOr<ResidentParts> CountResident(const ProcessImage& image,
                                            const ProcessStatistics& process);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RESIDENT_PARTS_H_
