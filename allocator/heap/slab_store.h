// The slabs of one heap, by class and by how full they are.
//
// Owns: the heap's slabs: their bitmaps, unit records and header bytes of
// blocks that are in nobody's hands. Called by: ThreadHeap, under its lock.
// Thread-safety: none of its own.
//
// Invariants:
//   B1: a slab is on list b of its class exactly when available() > 0 and
//       BucketOf(slab) == b; a slab with nothing to give is on no list.
//   B2: each unit of a slab bears the record (owner heap, Live header of the
//       class); a released slab's units bear 0.
//   B3: a block in a slab's bitmap has the header Free of its class.
#ifndef HAKMEM_ALLOCATOR_HEAP_SLAB_STORE_H_
#define HAKMEM_ALLOCATOR_HEAP_SLAB_STORE_H_

#include <atomic>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/slab/slab.h"
#include "allocator/statistics/statistic.h"

namespace hakmem {

class SlabStore {
 public:
  constexpr SlabStore(Ace* ace, HeapId heap, Partition partition = 0)
      : ace_(ace), heap_(heap), partition_(partition) {}
  SlabStore(const SlabStore&) = delete;
  SlabStore& operator=(const SlabStore&) = delete;

  // Takes up to `count` blocks, all of one slab, the lowest last; returns how
  // many. 0: ACE refused a new slab, and `refusal` says why; it may say
  // something, too, when a slab was granted.
  std::uint32_t Take(SizeClass size_class, void** blocks, std::uint32_t count,
                     Refusal& refusal);
  // Whether Take will need no new slab.
  bool HasBlocks(SizeClass size_class) const {
    return non_empty_[size_class] != 0;
  }
  // The next larger Tiny class for which Take needs no new slab, if its blocks
  // are as aligned as those of `size_class`; else `size_class`.
  SizeClass LargerClass(SizeClass size_class) const;
  // Puts back blocks of one class whose headers are Free, before the first that
  // was put back already, or never taken; returns how many. Runs of blocks of
  // the same slab cost one look-up.
  std::uint32_t Put(SizeClass size_class, void* const* blocks,
                    std::uint32_t count);
  // Releases the empty slabs that Put has kept, without a look at others.
  void ReleaseEmpty(SizeClass size_class) {
    while ((non_empty_[size_class] >> kEmptyBucket & 1) != 0) {
      Release(SlabAt(size_class, lists_[size_class][kEmptyBucket]));
    }
  }
  void ReleaseEmpty();

  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    visit(Statistic::kRefillsFromPartialSlabs, partial_takes_);
    visit(Statistic::kRefillsFromEmptySlabs, empty_takes_);
  }
  std::uint64_t slabs_granted() const { return slabs_granted_; }

  HAK_COLD void CheckInvariants() const;
  // The class's slabs that were used last: one on each list.
  HAK_COLD void CheckRecent(SizeClass size_class) const;

 private:
  static constexpr unsigned kShares = 4;
  static constexpr unsigned kEmptyBucket = kShares;
  static constexpr unsigned kBuckets = kShares + 1;
  static constexpr std::uint8_t kNotListed = 0xf;

  Zone& ZoneOf(SizeClass size_class) const;
  Slab& SlabAt(SizeClass size_class, UnitIndex unit) const;
  // The unit record of this store's slabs of the class.
  UnitRecord RecordOf(SizeClass size_class) const;
  static unsigned BucketOf(const Slab& slab);
  void List(Slab& slab, unsigned bucket);
  void Unlist(Slab& slab);
  void Refile(Slab& slab);
  Slab* Fullest(SizeClass size_class);
  Slab* GrantNew(SizeClass size_class, Refusal& refusal);
  void Release(Slab& slab);
  void AfterPut(Slab& slab);
  HAK_COLD void CheckSlab(SizeClass size_class, unsigned bucket,
                          UnitIndex unit) const;
  static void ClearHeaders(const Zone& zone, UnitIndex unit);

  Ace* const ace_;
  const HeapId heap_;
  const Partition partition_;
  // Written under the heap's lock, read by statistics.
  std::atomic<std::uint64_t> partial_takes_{0};
  std::atomic<std::uint64_t> empty_takes_{0};
  std::uint64_t slabs_granted_ = 0;
  // Bit per bucket.
  std::uint8_t non_empty_[kClassCount] = {};
  UnitIndex lists_[kClassCount][kBuckets] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SLAB_STORE_H_
