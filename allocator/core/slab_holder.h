// Holding a heap's slabs while they are looked at.
//
// Owns: nothing. Called by: what goes through all slabs: the check of the heap,
// the purge of holes. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_CORE_SLAB_HOLDER_H_
#define HAKMEM_ALLOCATOR_CORE_SLAB_HOLDER_H_

#include "absl/base/thread_annotations.h"
#include "allocator/config/config.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Keeps the slabs of a heap from being released, and their free blocks from
// being taken.
class SlabHolder {
 public:
  virtual void Hold(HeapId owner) = 0;
  virtual void LetGo(HeapId owner) = 0;

 protected:
  ~SlabHolder() = default;
};

// By the lock of the heap.
template <const Config& kConfig>
class HeapHolder final : public SlabHolder {
 public:
  explicit HeapHolder(HeapRegistry<kConfig>& registry) : registry_(registry) {}

  void Hold(HeapId owner) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    registry_.At(owner).LockForWalk();
  }
  void LetGo(HeapId owner) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    registry_.At(owner).UnlockAfterWalk();
  }

 private:
  HeapRegistry<kConfig>& registry_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_SLAB_HOLDER_H_
