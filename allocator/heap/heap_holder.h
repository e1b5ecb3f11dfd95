// A SlabHolder by the heaps' locks.
//
// Owns: nothing. Called by: ThreadHeap, HeapRegistry. Thread-safety: any
// thread.
#ifndef HAKMEM_ALLOCATOR_HEAP_HEAP_HOLDER_H_
#define HAKMEM_ALLOCATOR_HEAP_HEAP_HOLDER_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "allocator/config/config.h"
#include "allocator/heap/heap_system.h"
#include "allocator/heap/slab_holder.h"
#include "allocator/heap/thread_heap_class.h"

namespace hakmem {

template <const Config& kConfig>
class HeapHolder final : public SlabHolder {
 public:
  explicit HeapHolder(const HeapSystem& system) : system_(system) {}

  void Hold(HeapId owner) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // acquire: pairs with the release in HeapRegistry::Attach. Who read the
    // owner in a unit's record, without a lock, may not see the heap yet; it
    // was there first, so this ends (tests/models/hold.pml).
    while (owner > system_.heap_count.load(std::memory_order_acquire)) {
    }
    At(owner).LockForWalk();
  }
  bool TryHold(HeapId owner) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // acquire: pairs with the release in HeapRegistry::Attach.
    return owner <= system_.heap_count.load(std::memory_order_acquire) &&
           At(owner).TryLockForWalk();
  }
  void LetGo(HeapId owner) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    At(owner).UnlockAfterWalk();
  }

 private:
  using Heap = ThreadHeap<kConfig>;

  Heap& At(HeapId id) const {
    return *reinterpret_cast<Heap*>(system_.heaps + id * sizeof(Heap));
  }

  const HeapSystem& system_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_HEAP_HOLDER_H_
