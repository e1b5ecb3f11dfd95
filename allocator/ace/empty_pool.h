// Blocks of size 0: addresses of which no byte can be read or written.
//
// Owns: a window of the region, and a table with one word per block. Called by:
// Ace, under its lock, in variants that have such blocks.
// Thread-safety: none of its own; Contains from any thread.
//
// The window has a lane for each of four alignments. A lane's blocks lie one
// alignment apart in reserved pages, which cost addresses and no memory. Freed
// blocks queue up, and come back when kResting others have been freed after
// them; so a program that frees its blocks needs no more than that.
//
// Invariants:
//   EP1: a lane's words below used are kLive, or link the freed blocks from the
//       one freed first to kLast; the others are 0.
//   EP2: the pages of all blocks below used are reserved.
#ifndef HAKMEM_ALLOCATOR_ACE_EMPTY_POOL_H_
#define HAKMEM_ALLOCATOR_ACE_EMPTY_POOL_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/refusal.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class EmptyPool {
 public:
  static constexpr std::size_t kMaxAlignmentBytes = 64 * kKiB;
  // How many freed blocks of a lane wait, as long as there are addresses.
  static constexpr std::uint32_t kResting = 1024;

  constexpr EmptyPool() = default;
  EmptyPool(const EmptyPool&) = delete;
  EmptyPool& operator=(const EmptyPool&) = delete;

  HAK_COLD void Place(const Region& region, std::size_t page_bytes);

  // `alignment_bytes` is a power of two up to kMaxAlignmentBytes.
  BlockGrant Grant(VirtualMemory& memory, std::size_t alignment_bytes);
  // Frees the block if it is live; false: it is not.
  bool Release(Address address);

  bool Contains(Address address) const {
    return address - window_.begin < window_.bytes;
  }
  bool IsLive(Address address) const { return WordAt(address) == kLive; }
  bool WasFreed(Address address) const {
    const std::uint32_t word = WordAt(address);
    return word != 0 && word != kLive;
  }

  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    for (const Lane& lane : lanes_) VisitTable(lane.table, visit);
    visit(Statistic::kMapCalls, reserve_calls_);
  }

  HAK_COLD void CheckInvariants() const;

 private:
  static constexpr unsigned kLanes = 4;
  static constexpr unsigned kFirstLaneShift = 4;  // 16, 256, 4 Ki, 64 Ki
  static constexpr unsigned kLaneStep = 4;
  static constexpr std::uint32_t kLive = ~std::uint32_t{0};
  static constexpr std::uint32_t kLast = kLive - 1;

  struct Lane {
    Address begin = 0;
    std::uint32_t capacity = 0;
    std::uint32_t used = 0;  // blocks that were ever granted
    std::size_t reserved_bytes = 0;
    std::uint32_t* words = nullptr;
    // The ends of the queue; without meaning while freed is 0.
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t freed = 0;
    MetadataTable table;
  };

  static constexpr unsigned ShiftOf(unsigned lane) {
    return kFirstLaneShift + lane * kLaneStep;
  }
  Refusal Grow(VirtualMemory& memory, unsigned index);
  std::uint32_t WordAt(Address address) const;

  Region::Window window_;
  std::size_t lane_bytes_ = 0;
  std::uint64_t reserve_calls_ = 0;
  Lane lanes_[kLanes];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_EMPTY_POOL_H_
