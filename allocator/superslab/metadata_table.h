// A table that grows: an address window of which the first part is mapped.
//
// Owns: the mapped part. Called by: superslab, heap.
// Thread-safety: the caller serialises Place and EnsureMapped; the mapped part
// may be read and written by any thread that learnt of it afterwards.
//
// Invariants:
//   MT1: [base, base + mapped_bytes) is mapped; mapped_bytes never shrinks and
//       never exceeds capacity_bytes.
//   MT2: memory that nobody has written reads as zero.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_METADATA_TABLE_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_METADATA_TABLE_H_

#include <atomic>
#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/platform/virtual_memory.h"

namespace hakmem {

class MetadataTable {
 public:
  constexpr MetadataTable() = default;
  MetadataTable(const MetadataTable&) = delete;
  MetadataTable& operator=(const MetadataTable&) = delete;

  // Gives the table its window; nothing is mapped yet. `base` and
  // `capacity_bytes` are multiples of the page size. The table's first byte
  // lies `colour_bytes` into the window: tables whose entries are used
  // together must not agree in their addresses' low 12 bits, or loads wait for
  // unrelated stores (4 KiB aliasing).
  void Place(Address base, std::size_t capacity_bytes,
             std::size_t colour_bytes);

  // Makes the first `bytes` of the table usable. On failure the table is as
  // it was. ENOSPC: the window is too small.
  VmStatus EnsureMapped(VirtualMemory& memory, std::size_t bytes);

  // Address of the table's first byte.
  Address start() const { return base_ + colour_bytes_; }
  std::size_t mapped_bytes() const {
    return mapped_bytes_.load(std::memory_order_relaxed);
  }
  bool Contains(Address address) const {
    return address - base_ < mapped_bytes();
  }
  // How often the kernel was asked.
  std::uint64_t map_calls() const {
    return map_calls_.load(std::memory_order_relaxed);
  }

  // For readers of the words from outside.
  constexpr const std::atomic<std::size_t>& mapped_bytes_word() const {
    return mapped_bytes_;
  }
  constexpr const std::atomic<std::uint64_t>& map_calls_word() const {
    return map_calls_;
  }

  HAK_COLD void CheckInvariants() const;

 private:
  Address base_ = 0;
  std::size_t capacity_bytes_ = 0;
  std::size_t colour_bytes_ = 0;
  // Written under the caller's lock, read by statistics.
  std::atomic<std::size_t> mapped_bytes_{0};
  std::atomic<std::uint64_t> map_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_METADATA_TABLE_H_
