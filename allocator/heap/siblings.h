// The heaps that a thread has beside its first one: one for each partition
// (config/partitions.h), where types are separate.
//
// Owns: where they are. Called by: ThreadHeap, HeapRegistry, core.
// Thread-safety: the thread's, or who makes or adopts its first heap.
//
// Invariants:
//   SI1: a thread's siblings are attached while its first heap is, have no
//       siblings themselves, and are abandoned with it.
#ifndef HAKMEM_ALLOCATOR_HEAP_SIBLINGS_H_
#define HAKMEM_ALLOCATOR_HEAP_SIBLINGS_H_

#include "allocator/base/compiler.h"
#include "allocator/config/partitions.h"
#include "allocator/superslab/block_header.h"

namespace hakmem {

// `kSeparateTypes`: whether there are any.
template <typename Heap, bool kSeparateTypes>
class Siblings {
 public:
  explicit constexpr Siblings(Partition partition) : partition_(partition) {}

  // Of this heap; 0: a thread's first.
  Partition partition() const { return partition_; }
  bool any() const { return any_; }
  // Null: there is none. Ids are no kNoHeapId.
  Heap* Of(Partition partition) const { return heaps_[partition]; }
  HAK_ALWAYS_INLINE Heap* WithId(HeapId id) const {
    // That of no sibling is the first's, which is null.
    unsigned place = 0;
    for (unsigned i = 1; i < kMostPartitions; ++i) {
      if (ids_[i] == id) place = i;
    }
    return heaps_[place];
  }
  // The same at once, for a free. Null where two have a place in common, too:
  // then the free is as that of another thread's block.
  HAK_ALWAYS_INLINE Heap* AtOnce(HeapId id) const {
    Heap* const heap = by_id_[id % kPlaces];
    return heap != nullptr && heap->id() == id ? heap : nullptr;
  }
  void Add(Heap* heap) {
    const Partition partition = heap->siblings().partition();
    heaps_[partition] = heap;
    by_id_[heap->id() % kPlaces] = heap;
    ids_[partition] = heap->id();
    any_ = true;
  }
  void Forget() { *this = Siblings(partition_); }
  template <typename Use>
  void ForEach(const Use& use) const {
    for (Heap* const heap : heaps_) {
      if (heap != nullptr) use(*heap);
    }
  }

 private:
  Partition partition_;
  bool any_ = false;
  HeapId ids_[kMostPartitions] = {};
  Heap* heaps_[kMostPartitions] = {};
  // Siblings are made one after the other, and so are their ids.
  static constexpr HeapId kPlaces = 2 * kMostPartitions;
  Heap* by_id_[kPlaces] = {};
};

template <typename Heap>
class Siblings<Heap, false> {
 public:
  explicit constexpr Siblings(Partition) {}

  static constexpr Partition partition() { return 0; }
  static constexpr bool any() { return false; }
  static constexpr Heap* Of(Partition) { return nullptr; }
  static constexpr Heap* WithId(HeapId) { return nullptr; }
  static constexpr Heap* AtOnce(HeapId) { return nullptr; }
  static constexpr void Add(Heap*) {}
  static constexpr void Forget() {}
  template <typename Use>
  static constexpr void ForEach(const Use&) {}
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SIBLINGS_H_
