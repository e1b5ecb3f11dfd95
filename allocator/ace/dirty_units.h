// The dirty units of one zone: free or kept, and holding old data.
//
// Owns: which there are, and the list of their SuperSlabs, least recently used
// first. Called by: UnitPool, under Ace's lock. Thread-safety: none of its own.
//
// Invariants:
//   DU1: a SuperSlab on the list has dirty units; one that has, and half of one
//        of huge pages, is on it. Less is from a free on that ends its use.
//   DU2: the counts agree with the records; purgeable units are those of
//        SuperSlabs on the list.
#ifndef HAKMEM_ALLOCATOR_ACE_DIRTY_UNITS_H_
#define HAKMEM_ALLOCATOR_ACE_DIRTY_UNITS_H_

#include <cstdint>

#include "allocator/ace/huge_frames.h"
#include "allocator/base/compiler.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class DirtyUnits {
 public:
  constexpr DirtyUnits(Zone& zone, const HugeFrames& huge)
      : zone_(zone), huge_(huge) {}
  DirtyUnits(const DirtyUnits&) = delete;
  DirtyUnits& operator=(const DirtyUnits&) = delete;

  void Mark(FrameIndex frame, std::uint32_t mask);
  void Clear(FrameIndex frame, std::uint32_t mask);
  // From now on parts of huge pages that are released are worth purging, or no
  // longer.
  void SplitHuge(bool split) { splits_huge_ = split; }

  constexpr const std::uint64_t& count() const { return count_; }
  std::uint64_t purgeable() const { return purgeable_; }
  // The least recently used SuperSlab; kNoFrame: there is none.
  FrameIndex oldest() const { return head_; }
  // How many purgeable units nobody has asked for since StartInterval: the
  // fewest there were. (The working set of Bonwick's depot, "Magazines and
  // Vmem", USENIX 2001, section 3.4.)
  std::uint64_t idle() const { return idle_; }
  void StartInterval() { idle_ = purgeable_; }

  HAK_COLD void CheckInvariants() const;

 private:
  bool IsWorthPurging(FrameIndex frame) const;
  void Push(FrameIndex frame);
  void Remove(FrameIndex frame);

  Zone& zone_;
  const HugeFrames& huge_;
  FrameIndex head_ = kNoFrame;
  FrameIndex tail_ = kNoFrame;
  bool splits_huge_ = false;
  std::uint64_t count_ = 0;
  std::uint64_t purgeable_ = 0;
  std::uint64_t idle_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_DIRTY_UNITS_H_
