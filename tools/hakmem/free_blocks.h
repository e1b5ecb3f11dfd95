// The free blocks of a slab in another process: where each of them is, by what
// the slab's descriptor counts (docs/process_tables.md).
#ifndef HAKMEM_TOOLS_HAKMEM_FREE_BLOCKS_H_
#define HAKMEM_TOOLS_HAKMEM_FREE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "allocator/superslab/block_tables.h"

namespace hakmem::tools {

struct FreeBlocks {
  std::uint64_t cached = 0;  // out of the slab, and not live
  std::uint64_t holes = 0;   // back in the slab
  std::uint64_t fresh = 0;   // never handed out

  std::uint64_t all() const { return cached + holes + fresh; }
  FreeBlocks& operator+=(const FreeBlocks& other);
};

// Where a descriptor has the words that count a slab's blocks.
class SlabWords {
 public:
  // False: not where a descriptor can have them.
  bool Find(const BlockTables& tables);

  // How much of a descriptor Split needs.
  std::size_t bytes() const { return bytes_; }
  // The free blocks of a slab with `live` live ones and room for `most`, unless
  // it has a guard. What does not go together, as the slab changes while it is
  // read, counts as 0.
  FreeBlocks Split(std::span<const char> descriptor, std::uint32_t most,
                   std::uint32_t live) const;

 private:
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
  std::size_t bump_ = 0;
  std::size_t free_count_ = 0;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FREE_BLOCKS_H_
