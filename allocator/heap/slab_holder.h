// Holding a heap's slabs while they are looked at.
//
// Owns: nothing. Called by: what goes through all slabs: the check of the heap,
// the purges of holes. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_HEAP_SLAB_HOLDER_H_
#define HAKMEM_ALLOCATOR_HEAP_SLAB_HOLDER_H_

#include "allocator/superslab/zone.h"

namespace hakmem {

// Keeps the slabs of a heap from being released, and their free blocks from
// being taken.
class SlabHolder {
 public:
  virtual void Hold(HeapId owner) = 0;
  // Without waiting; false: somebody else does.
  virtual bool TryHold(HeapId owner) = 0;
  virtual void LetGo(HeapId owner) = 0;

 protected:
  ~SlabHolder() = default;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SLAB_HOLDER_H_
