// Frames of one zone that were unmapped under pressure, and are nobody's.
//
// Owns: which there are. Called by: Ace, under its lock. Thread-safety: none of
// its own.
//
// Invariants:
//   UF1: count() agrees with the zone's records.
#ifndef HAKMEM_ALLOCATOR_ACE_UNMAPPED_FRAMES_H_
#define HAKMEM_ALLOCATOR_ACE_UNMAPPED_FRAMES_H_

#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class UnmappedFrames {
 public:
  explicit constexpr UnmappedFrames(Zone& zone) : zone_(zone) {}
  UnmappedFrames(const UnmappedFrames&) = delete;
  UnmappedFrames& operator=(const UnmappedFrames&) = delete;

  FrameIndex count() const { return count_; }
  // A frame was unmapped.
  void Note();
  // The first of so many neighbouring ones, all of huge pages or none;
  // kNoFrame: there are none. What a search learns makes the next one short,
  // until more is unmapped.
  FrameIndex Find(FrameIndex frames);
  // Maps them again. EEXIST: those that something else has taken are foreign,
  // and unmapped no longer.
  VmStatus Map(VirtualMemory& memory, FrameIndex first, FrameIndex frames,
               Access access);

  void CheckInvariants() const;

 private:
  // Kept units tell frames that are their class's.
  bool Has(FrameIndex frame) const {
    const SuperSlab& slab = zone_.super_slab(frame);
    return slab.presence == Presence::kUnmapped && slab.kept_units == 0;
  }

  Zone& zone_;
  FrameIndex count_ = 0;
  // No run of 2^i of them begins before from_[i], and none is longer than
  // most_.
  FrameIndex from_[8] = {};
  FrameIndex most_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_UNMAPPED_FRAMES_H_
