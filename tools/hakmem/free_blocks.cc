#include "tools/hakmem/free_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "allocator/superslab/block_tables.h"

namespace hakmem::tools {
namespace {

// The words are in the part that was asked for.
template <typename T>
T WordAt(std::span<const char> descriptor, std::size_t offset) {
  T word = 0;
  std::memcpy(&word, descriptor.subspan(offset, sizeof(word)).data(),
              sizeof(word));
  return word;
}

}  // namespace

FreeBlocks& FreeBlocks::operator+=(const FreeBlocks& other) {
  cached += other.cached;
  holes += other.holes;
  fresh += other.fresh;
  return *this;
}

bool SlabWords::Find(const BlockTables& tables) {
  const auto offset = [&tables](const void* word) {
    return reinterpret_cast<std::size_t>(word) -
           reinterpret_cast<std::size_t>(tables.descriptor);
  };
  capacity_ = offset(tables.slab_capacity);
  bump_ = offset(tables.slab_bump);
  free_count_ = offset(tables.slab_free_count);
  const std::size_t last = std::max({capacity_, bump_, free_count_});
  bytes_ = last + sizeof(std::uint32_t);
  return std::ranges::all_of(tables.zones, [&](const ZoneTables& zone) {
    // A word before the descriptor is far behind it, as there is no sign.
    return last < zone.descriptor_bytes && bytes_ <= zone.descriptor_bytes;
  });
}

FreeBlocks SlabWords::Split(std::span<const char> descriptor,
                            std::uint32_t most, std::uint32_t live) const {
  std::uint32_t capacity = WordAt<std::uint16_t>(descriptor, capacity_);
  if (capacity == 0 || capacity > most) capacity = most;
  const std::uint32_t bump =
      std::min(WordAt<std::uint32_t>(descriptor, bump_), capacity);
  const std::uint32_t holes =
      std::min(WordAt<std::uint32_t>(descriptor, free_count_), bump);
  const std::uint32_t handed_out = bump - holes;
  return {.cached = handed_out - std::min(handed_out, live),
          .holes = holes,
          .fresh = capacity - bump};
}

}  // namespace hakmem::tools
