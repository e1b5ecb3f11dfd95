#include "tools/hakmem/huge_blocks.h"

#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/block_tables.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {
namespace {

constexpr std::uint32_t kNoHuge = ~std::uint32_t{0};
constexpr int kTries = 5;

// False: the list changed meanwhile.
absl::StatusOr<bool> CountOnce(const ProcessImage& image,
                               const HugeTables& tables, BlockSum& sum) {
  std::uint64_t headers = 0;
  std::uint64_t records = 0;
  std::uint32_t block = kNoHuge;
  TableReads reads(image);
  reads.At(tables.headers, headers)
      .At(tables.records, records)
      .At(tables.first, block);
  while (reads.status().ok() && block != kNoHuge) {
    const std::uint64_t record =
        records + std::uint64_t{block} * tables.record_bytes;
    HeaderByte header = kNoBlock;
    std::uint64_t bytes = 0;
    std::uint32_t next = kNoHuge;
    reads.At(headers + block, header)
        .At(record + tables.bytes_offset, bytes)
        .At(record + tables.next_offset, next);
    if (!reads.status().ok()) break;
    sum.taken_bytes += bytes;
    if (HeaderState(header) == BlockState::kLive) {
      ++sum.blocks;
      sum.bytes += bytes;
    }
    if (next <= block) return false;
    block = next;
  }
  if (!reads.status().ok()) return reads.status();
  return true;
}

}  // namespace

absl::StatusOr<BlockSum> CountHugeBlocks(const ProcessImage& image,
                                         const HugeTables& tables) {
  BlockSum sum;
  for (int tries = 0; tries < kTries; ++tries) {
    sum = {};
    const absl::StatusOr<bool> whole = CountOnce(image, tables, sum);
    if (!whole.ok()) return whole.status();
    if (*whole) break;
  }
  return sum;
}

}  // namespace hakmem::tools
