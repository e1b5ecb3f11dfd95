// UnitPool: runs of wholly free frames.
//
// The map has levels: a word for 64 frames, one for 64 such words, one for 64
// of those. Word n of a group lies in the record of the group's frame n, so it
// needs no table: a word of level 1 is used when there are 64 frames.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <limits>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"

namespace hakmem {
namespace {

constexpr unsigned kMapLevels = 3;
constexpr std::uint64_t kFull = ~std::uint64_t{0};

constexpr unsigned ShiftOf(unsigned level) { return 6 * level; }
// The first frame of the word of this level that has `frame`.
constexpr FrameIndex GroupOf(unsigned level, FrameIndex frame) {
  return frame & ~((FrameIndex{64} << ShiftOf(level)) - 1);
}

}  // namespace

unsigned UnitPool::FrameList(std::uint32_t run_frames) {
  return std::min(kFirstFrameList + run_frames - 1, kLastFrameList);
}

std::uint64_t& UnitPool::MapWord(unsigned level, FrameIndex frame) const {
  return zone_.super_slab(GroupOf(level, frame) + level).free_map;
}

void UnitPool::MarkFree(FrameIndex frame, bool is_free) {
  for (unsigned level = 0; level < kMapLevels; ++level) {
    std::uint64_t& word = MapWord(level, frame);
    const std::uint64_t bit = std::uint64_t{1}
                              << (frame >> ShiftOf(level) & 63);
    const bool was_full = word == kFull;
    word = is_free ? word | bit : word & ~bit;
    if (was_full == (word == kFull)) return;
  }
}

// Up to the level at which some frame before is not free, and down to it.
FrameIndex UnitPool::RunStart(FrameIndex frame) const {
  FrameIndex start = frame;
  const auto used_before = [&](unsigned level) {
    const FrameIndex last = start - 1;
    return ~MapWord(level, last) &
           (kFull >> (63 - (last >> ShiftOf(level) & 63)));
  };
  unsigned level = 0;
  while (start != 0 && used_before(level) == 0) {
    start = GroupOf(level, start - 1);
    level = std::min(level + 1, kMapLevels - 1);
  }
  if (start == 0) return 0;
  for (;; --level) {
    const auto group =
        static_cast<FrameIndex>(std::bit_width(used_before(level)));
    start = GroupOf(level, start - 1) + (group << ShiftOf(level));
    if (level == 0) return start;
  }
}

bool UnitPool::IsFreeFrame(FrameIndex frame) const {
  return frame < zone_.frame_count() && zone_.super_slab(frame).run_frames != 0;
}

// Adds wholly free frames, merging them with their neighbours.
void UnitPool::AddRun(FrameIndex first, std::uint32_t frames) {
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).run_frames = 1;  // marks it; the ends carry more
    MarkFree(frame, true);
  }
  if (first != 0 && IsFreeFrame(first - 1)) {
    const std::uint32_t before = zone_.super_slab(first - 1).run_frames;
    first -= before;
    frames += before;
    RemoveList(first);
  }
  const FrameIndex next = first + frames;
  if (IsFreeFrame(next)) {
    RemoveList(next);
    frames += zone_.super_slab(next).run_frames;
  }
  FileRun(first, frames);
}

// The free units at the end of the partly used SuperSlab before `frame`.
std::uint32_t UnitPool::TailBefore(FrameIndex frame) const {
  if (frame == 0 || IsFreeFrame(frame - 1)) return 0;
  return static_cast<std::uint32_t>(
      std::countl_one(zone_.super_slab(frame - 1).free_units));
}

// The first frame of a run of free frames that holds `units`, together with
// the tail before it if `with_tail`; nearly the shortest such run.
FrameIndex UnitPool::FindRun(std::uint32_t units, bool with_tail) const {
  constexpr int kMaxTries = 8;
  const std::uint32_t least_units =
      with_tail ? std::max(units, kUnitsPerSuperSlab) - (kUnitsPerSuperSlab - 1)
                : units;
  const std::uint32_t frames = DivideRoundUp(least_units, kUnitsPerSuperSlab);
  std::uint64_t lists =
      non_empty_ & ~((std::uint64_t{1} << FrameList(frames)) - 1);
  FrameIndex best = kNoFrame;
  for (; lists != 0 && best == kNoFrame; lists &= lists - 1) {
    const auto list = static_cast<unsigned>(std::countr_zero(lists));
    int tries =
        list == kLastFrameList ? std::numeric_limits<int>::max() : kMaxTries;
    for (FrameIndex run = lists_[list]; run != kNoFrame && tries > 0;
         run = zone_.super_slab(run).next, --tries) {
      const std::uint32_t length = zone_.super_slab(run).run_frames;
      const std::uint64_t room = std::uint64_t{length} * kUnitsPerSuperSlab +
                                 (with_tail ? TailBefore(run) : 0);
      if (room >= units &&
          (best == kNoFrame || length < zone_.super_slab(best).run_frames)) {
        best = run;
      }
    }
  }
  return best;
}

// Sets up a run that has no neighbours.
void UnitPool::FileRun(FrameIndex first, std::uint32_t frames) {
  zone_.super_slab(first).run_frames = frames;
  zone_.super_slab(first + frames - 1).run_frames = frames;
  PushList(first, FrameList(frames));
}

// The first frame without dirty units of the run that a grant of one frame
// takes, as far as one looks; kNoFrame: there is none.
FrameIndex UnitPool::FindClean() const {
  constexpr FrameIndex kMostFrames = 64;
  FrameIndex frame = FindRun(kUnitsPerSuperSlab, /*with_tail=*/false);
  if (frame == kNoFrame) return kNoFrame;
  const FrameIndex end =
      frame + std::min(zone_.super_slab(frame).run_frames, kMostFrames);
  while (frame != end && zone_.super_slab(frame).dirty_units != 0) ++frame;
  return frame == end ? kNoFrame : frame;
}

// Kept units tell frames that are their class's.
bool UnitPool::IsUnmapped(FrameIndex frame) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  return slab.presence == Presence::kUnmapped && slab.kept_units == 0;
}

// A frame was; it may have made a run longer.
void UnitPool::NoteUnmapped() {
  ++unmapped_frames_;
  most_unmapped_ = kNoFrame;
  std::ranges::fill(unmapped_from_, 0);
}

// What a search learns makes the next one short, until more is unmapped. A run
// has huge pages, or it has none.
FrameIndex UnitPool::FindUnmapped(FrameIndex frames) {
  if (frames > std::min(unmapped_frames_, most_unmapped_)) return kNoFrame;
  const auto size =
      std::min(static_cast<std::size_t>(std::bit_width(frames / 2)),
               std::size(unmapped_from_) - 1);
  const FrameIndex least = FrameIndex{1} << size;
  FrameIndex first = zone_.frame_count();  // of a run of `least`
  FrameIndex longest = least - 1;
  FrameIndex run = 0;
  FrameIndex frame = unmapped_from_[size];
  for (; frame < zone_.frame_count() && run != frames; ++frame) {
    const bool first_of_kind = frame != 0 && IsHuge(frame) != IsHuge(frame - 1);
    if (first_of_kind || !IsUnmapped(frame)) run = 0;
    if (IsUnmapped(frame)) ++run;
    longest = std::max(longest, run);
    if (run == least) first = std::min(first, frame + 1 - run);
  }
  unmapped_from_[size] = first;
  if (run == frames) return frame - run;
  most_unmapped_ = longest;
  return kNoFrame;
}

// Takes frames out of their run; what lies on either side stays free.
void UnitPool::CutRun(FrameIndex first, std::uint32_t frames) {
  const FrameIndex start = RunStart(first);
  const FrameIndex end = start + zone_.super_slab(start).run_frames;
  RemoveList(start);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).run_frames = 0;
    MarkFree(frame, false);
  }
  if (start != first) FileRun(start, first - start);
  if (first + frames != end) FileRun(first + frames, end - first - frames);
}

}  // namespace hakmem
