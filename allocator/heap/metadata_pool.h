// Fixed-size pieces of metadata: magazines and parcels.
//
// Owns: one table and the list of its free pieces. Called by: ThreadHeap.
// Thread-safety: any thread; one lock, taken last (docs/design.md).
//
// Invariants:
//   D1: every piece below `made_` is either in use or on the free list.
#ifndef HAKMEM_ALLOCATOR_HEAP_METADATA_POOL_H_
#define HAKMEM_ALLOCATOR_HEAP_METADATA_POOL_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/platform/futex_lock.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class MetadataPool {
 public:
  // Pieces are `piece_bytes` long (a power of two) and aligned to that.
  constexpr MetadataPool(VirtualMemory& memory, std::size_t piece_bytes)
      : memory_(memory), piece_bytes_(piece_bytes) {}
  MetadataPool(const MetadataPool&) = delete;
  MetadataPool& operator=(const MetadataPool&) = delete;

  // Once, before anything else.
  void Place(Region::Window window);

  // A piece with arbitrary content; null when the table cannot grow.
  void* Take();
  void Put(void* piece);

  std::size_t mapped_bytes() const { return table_.mapped_bytes(); }
  std::uint64_t map_calls() const { return table_.map_calls(); }

  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(lock_) { lock_.Lock(); }
  void UnlockAfterFork() ABSL_UNLOCK_FUNCTION(lock_) { lock_.Unlock(); }
  void ResetLockAfterFork() { lock_.ResetAfterFork(); }

  void CheckInvariants();

 private:
  struct FreePiece {
    FreePiece* next;
  };

  VirtualMemory& memory_;
  const std::size_t piece_bytes_;
  FutexLock lock_;
  MetadataTable table_;  // grown under lock_; its counters are atomics
  FreePiece* free_ ABSL_GUARDED_BY(lock_) = nullptr;
  std::size_t free_count_ ABSL_GUARDED_BY(lock_) = 0;
  std::size_t made_ ABSL_GUARDED_BY(lock_) = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_METADATA_POOL_H_
