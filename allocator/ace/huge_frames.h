// SuperSlabs of one zone that are asked to consist of huge pages, for good.
// They are mapped as a whole or not at all.
//
// One of which a part goes back, while others are in use, is split: it has
// small pages until nothing of it is in use. Else the kernel would make it
// whole again, and what went back would take memory.
//
// Owns: of the zone's SuperSlab records, what says so. Called by: Ace and
// UnitPool, under Ace's lock. Thread-safety: none of its own.
//
// Invariants:
//   HF1: split SuperSlabs are ones of huge pages, and are counted.
#ifndef HAKMEM_ALLOCATOR_ACE_HUGE_FRAMES_H_
#define HAKMEM_ALLOCATOR_ACE_HUGE_FRAMES_H_

#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// The least that is worth splitting a huge page.
inline constexpr int kLeastHugeUnits = kUnitsPerSuperSlab / 2;

class HugeFrames {
 public:
  constexpr HugeFrames(Zone& zone, VirtualMemory& memory)
      : zone_(zone), memory_(memory) {}
  HugeFrames(const HugeFrames&) = delete;
  HugeFrames& operator=(const HugeFrames&) = delete;

  void Add(FrameIndex first, FrameIndex frames);
  bool Has(FrameIndex frame) const {
    return frame < zone_.frame_count() && zone_.super_slab(frame).huge;
  }
  // And is not split.
  bool IsWhole(FrameIndex frame) const {
    return Has(frame) && !zone_.super_slab(frame).split;
  }
  FrameIndex first() const { return first_; }  // kNoFrame: there is none
  // How many runs of such frames there are, at most.
  std::uint32_t runs() const { return runs_; }

  // A part of a frame goes back, or all of it.
  void NotePurge(FrameIndex frame);

  HAK_COLD void CheckInvariants() const;

 private:
  Zone& zone_;
  VirtualMemory& memory_;
  FrameIndex first_ = kNoFrame;
  std::uint32_t runs_ = 0;
  FrameIndex split_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_HUGE_FRAMES_H_
