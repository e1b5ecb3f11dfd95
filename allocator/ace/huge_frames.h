// SuperSlabs of one zone that are asked to consist of huge pages, for good.
//
// They are mapped as a whole or not at all.
//
// Owns: of the zone's SuperSlab records, what says so. Called by: Ace and
// UnitPool, under Ace's lock. Thread-safety: none of its own.
//
// Invariants:
//   HF1: split SuperSlabs are ones of huge pages, and are counted; those with
//        slabs that have holes are in use.
#ifndef HAKMEM_ALLOCATOR_ACE_HUGE_FRAMES_H_
#define HAKMEM_ALLOCATOR_ACE_HUGE_FRAMES_H_

#include <cstdint>

#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// The least that is worth splitting a huge page.
inline constexpr int kLeastHugeUnits = kUnitsPerSuperSlab / 2;

// What became of a slab, of which a part was given back: for the first time
// since it was new or taken; once more; all its blocks were taken; it goes.
enum class Holes : std::uint8_t { kFirst, kMore, kTaken, kReleased };

class HugeFrames {
 public:
  explicit constexpr HugeFrames(Zone& zone) : zone_(zone) {}
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

  // A part of a frame in use goes back. Decline is to follow, if true.
  bool Split(FrameIndex frame);
  void Decline(VirtualMemory& memory, FrameIndex frame) const;
  void Ask(VirtualMemory& memory, FrameIndex frame) const;
  // A frame is split no more; false: it was not. Ask is to follow while it is
  // mapped.
  bool Forget(FrameIndex frame);
  // Frames of which nothing is in use and all goes back: a bit for each that
  // was split, and for which Ask is to follow.
  std::uint32_t ForgetIdle(FrameIndex first, FrameIndex frames);

  // Of a slab in the frame. While any has holes, it has no huge page, until it
  // is wholly granted, or wholly given back.
  void NoteHoles(VirtualMemory& memory, FrameIndex frame, Holes holes);
  void NoteGrant(VirtualMemory& memory, UnitIndex first, std::uint32_t units);

  void CheckInvariants() const;

 private:
  static std::uint32_t UnitsInUse(const SuperSlab& slab) {
    return ~(slab.free_units | slab.kept_units | slab.purging_units);
  }
  void MendIfWhole(VirtualMemory& memory, FrameIndex frame);

  Zone& zone_;
  FrameIndex first_ = kNoFrame;
  std::uint32_t runs_ = 0;
  FrameIndex split_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_HUGE_FRAMES_H_
