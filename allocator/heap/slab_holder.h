// Holding a heap's slabs while they are looked at: by the heap's lock.
//
// Owns: nothing. Called by: what goes through all slabs: the check of the heap,
// the purges of holes. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_HEAP_SLAB_HOLDER_H_
#define HAKMEM_ALLOCATOR_HEAP_SLAB_HOLDER_H_

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "allocator/base/units.h"
#include "allocator/process/gated_lock.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Keeps the slabs of a heap from being released, and their free blocks from
// being taken. The locks of heaps 1 to `heap_count` lie step_bytes apart.
class SlabHolder {
 public:
  SlabHolder(const std::atomic<HeapId>& heap_count, Address locks,
             std::size_t step_bytes)
      : heap_count_(heap_count), locks_(locks), step_bytes_(step_bytes) {}

  void Hold(HeapId owner) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // acquire: pairs with the release in HeapRegistry::Attach. Who read the
    // owner in a unit's record, without a lock, may not see the heap yet; it
    // was there first, so this ends (tests/models/hold.pml).
    while (owner > heap_count_.load(std::memory_order_acquire)) {
    }
    LockOf(owner).Lock();
  }
  // Without waiting; false: somebody else does.
  bool TryHold(HeapId owner) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // acquire: pairs with the release in HeapRegistry::Attach.
    return owner <= heap_count_.load(std::memory_order_acquire) &&
           LockOf(owner).TryLock();
  }
  void LetGo(HeapId owner) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    LockOf(owner).Unlock();
  }

 private:
  GatedLock& LockOf(HeapId id) const {
    return *reinterpret_cast<GatedLock*>(locks_ + id * step_bytes_);
  }

  const std::atomic<HeapId>& heap_count_;
  const Address locks_;
  const std::size_t step_bytes_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SLAB_HOLDER_H_
