// The free units of one zone in lists: runs of wholly free frames by length,
// and frames partly in use by their longest run of free units. And frames that
// were unmapped under pressure, and are nobody's.
//
// Owns: of the zone's SuperSlab records, what says where they are listed.
// Called by: UnitPool and RunStore, under Ace's lock. Thread-safety: none of
// its own.
//
// Invariants:
//   RU1: a SuperSlab is on list n < 32 exactly when its longest run of free
//        units is n and it is not wholly free; its run_frames is 0.
//   RU2: no two neighbouring runs of free frames exist; the first and last
//        frame of each carry its length, and the first is on the list for it.
//   RU3: a frame's bit of the map is set exactly when it is wholly free.
//   UF1: UnmappedFrames::count() agrees with the zone's records.
#ifndef HAKMEM_ALLOCATOR_ACE_FRAME_RUNS_H_
#define HAKMEM_ALLOCATOR_ACE_FRAME_RUNS_H_

#include <algorithm>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class FrameRuns {
 public:
  explicit constexpr FrameRuns(Zone& zone) : zone_(zone) {}
  FrameRuns(const FrameRuns&) = delete;
  FrameRuns& operator=(const FrameRuns&) = delete;

  // After the free units of a frame have changed that is not wholly free.
  void File(FrameIndex frame);
  // A frame, or the first one of a run, is on no list.
  void Unlist(FrameIndex frame);
  // Adds wholly free frames, merging them with their neighbours.
  void Add(FrameIndex first, std::uint32_t frames);
  // Takes frames out of their run; what lies on either side stays free.
  void Cut(FrameIndex first, std::uint32_t frames);

  bool IsFree(FrameIndex frame) const {
    return frame < zone_.frame_count() &&
           zone_.super_slab(frame).run_frames != 0;
  }
  bool any() const { return non_empty_ >> kFirstFrameList != 0; }
  // The first frame of the run that has a free frame.
  FrameIndex StartOf(FrameIndex frame) const;
  // How many free units end the partly used SuperSlab before `frame`.
  std::uint32_t TailBefore(FrameIndex frame) const;
  // The first frame of a run of free frames that holds `units`, together with
  // the tail before it if `with_tail`; nearly the shortest such run. kNoFrame:
  // there is none.
  FrameIndex Find(std::uint32_t units, bool with_tail) const;
  // Calls `use(frame)` for frames partly in use that have runs of `units`, the
  // fullest first, and so many of each list, until it says true.
  template <typename Use>
  void FindPartly(std::uint32_t units, std::uint32_t tries,
                  const Use& use) const {
    std::uint64_t lists =
        non_empty_ & LowBits32(32) & ~std::uint64_t{LowBits32(units)};
    for (; lists != 0; lists &= lists - 1) {
      FrameIndex frame = lists_[std::countr_zero(lists)];
      for (std::uint32_t left = tries; frame != kNoFrame && left != 0; --left) {
        const FrameIndex next = zone_.super_slab(frame).next;
        if (use(frame)) return;
        frame = next;
      }
    }
  }
  // The longest run of free units, as far as the lists tell (frames beyond 31
  // count as 32 frames).
  std::uint32_t LongestUnits() const;

  HAK_COLD void CheckInvariants() const;

 private:
  static constexpr unsigned kListCount = 64;
  static constexpr unsigned kFirstFrameList = 32;
  static constexpr unsigned kLastFrameList = 63;

  static unsigned ListOf(std::uint32_t run_frames) {
    return std::min(kFirstFrameList + run_frames - 1, kLastFrameList);
  }
  void Push(FrameIndex frame, unsigned list);
  void FileRun(FrameIndex first, std::uint32_t frames);
  // The map's word for 64 frames lies in the record of the first of them.
  std::uint64_t& MapWord(FrameIndex frame) const {
    return zone_.super_slab(frame & ~FrameIndex{63}).free_map;
  }
  void MarkFree(FrameIndex frame, bool is_free) {
    const std::uint64_t bit = std::uint64_t{1} << (frame & 63);
    is_free ? MapWord(frame) |= bit : MapWord(frame) &= ~bit;
  }

  Zone& zone_;
  std::uint64_t non_empty_ = 0;  // bit per list
  FrameIndex lists_[kListCount] = {};
};

class UnmappedFrames {
 public:
  constexpr UnmappedFrames(Zone& zone, VirtualMemory& memory)
      : zone_(zone), memory_(memory) {}
  UnmappedFrames(const UnmappedFrames&) = delete;
  UnmappedFrames& operator=(const UnmappedFrames&) = delete;

  FrameIndex count() const { return count_; }
  // A frame was unmapped.
  void Note(FrameIndex frame);
  // The first of so many neighbouring ones, all of huge pages or none;
  // kNoFrame: there are none. What a search learns makes the next one short,
  // until more is unmapped.
  FrameIndex Find(FrameIndex frames);
  // Maps them again. EEXIST: those that something else has taken are foreign,
  // and unmapped no longer.
  VmStatus Map(FrameIndex first, FrameIndex frames, Access access);

  HAK_COLD void CheckInvariants() const;

 private:
  // Kept units tell frames that are their class's.
  bool Has(FrameIndex frame) const {
    const SuperSlab& slab = zone_.super_slab(frame);
    return slab.presence == Presence::kUnmapped && slab.kept_units == 0;
  }

  Zone& zone_;
  VirtualMemory& memory_;
  FrameIndex count_ = 0;
  // None lies before from_, and no run of them is longer than most_.
  FrameIndex from_ = 0;
  FrameIndex most_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_FRAME_RUNS_H_
