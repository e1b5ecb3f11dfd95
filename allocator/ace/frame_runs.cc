#include "allocator/ace/frame_runs.h"

#include <algorithm>
#include <bit>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

void FrameRuns::Push(FrameIndex frame, unsigned list) {
  SuperSlab& slab = zone_.super_slab(frame);
  const bool had_any = (non_empty_ >> list & 1) != 0;
  slab.list = static_cast<std::uint8_t>(list);
  slab.previous = kNoFrame;
  slab.next = had_any ? lists_[list] : kNoFrame;
  if (had_any) zone_.super_slab(lists_[list]).previous = frame;
  lists_[list] = frame;
  non_empty_ |= std::uint64_t{1} << list;
}

void FrameRuns::Unlist(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (slab.list == 0) return;
  if (slab.next != kNoFrame) {
    zone_.super_slab(slab.next).previous = slab.previous;
  }
  if (slab.previous != kNoFrame) {
    zone_.super_slab(slab.previous).next = slab.next;
  } else if (slab.next != kNoFrame) {
    lists_[slab.list] = slab.next;
  } else {
    non_empty_ &= ~(std::uint64_t{1} << slab.list);
  }
  slab.list = 0;
}

void FrameRuns::File(FrameIndex frame) {
  const unsigned run = LongestRun32(zone_.super_slab(frame).free_units);
  const unsigned list = zone_.super_slab(frame).list;
  if (list == run) return;
  Unlist(frame);
  if (run != 0) Push(frame, run);
}

// Behind the last frame before it that is not free.
FrameIndex FrameRuns::StartOf(FrameIndex frame) const {
  if (!IsFree(frame + 1)) return frame + 1 - zone_.super_slab(frame).run_frames;
  FrameIndex end = frame;
  while (end != 0) {
    const FrameIndex last = end - 1;
    const std::uint64_t used = ~MapWord(last) << (63 - (last & 63));
    const auto free = static_cast<FrameIndex>(std::countl_zero(used));
    if (used != 0) return end - free;
    end = last & ~FrameIndex{63};
  }
  return 0;
}

void FrameRuns::Add(FrameIndex first, std::uint32_t frames) {
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).run_frames = 1;  // marks it; the ends carry more
    MarkFree(frame, true);
  }
  if (first != 0 && IsFree(first - 1)) {
    const std::uint32_t before = zone_.super_slab(first - 1).run_frames;
    first -= before;
    frames += before;
    Unlist(first);
  }
  const FrameIndex next = first + frames;
  if (IsFree(next)) {
    Unlist(next);
    frames += zone_.super_slab(next).run_frames;
  }
  FileRun(first, frames);
}

std::uint32_t FrameRuns::TailBefore(FrameIndex frame) const {
  if (frame == 0 || IsFree(frame - 1)) return 0;
  return static_cast<std::uint32_t>(
      std::countl_one(zone_.super_slab(frame - 1).free_units));
}

FrameIndex FrameRuns::Find(std::uint32_t units, bool with_tail) const {
  constexpr int kMaxTries = 8;
  // Of the longest ones, and more until one has room.
  constexpr int kMaxLongTries = 1024;
  const std::uint32_t least_units =
      with_tail ? std::max(units, kUnitsPerSuperSlab) - (kUnitsPerSuperSlab - 1)
                : units;
  const std::uint32_t frames = DivideRoundUp(least_units, kUnitsPerSuperSlab);
  std::uint64_t lists =
      non_empty_ & ~((std::uint64_t{1} << ListOf(frames)) - 1);
  FrameIndex best = kNoFrame;
  for (; lists != 0 && best == kNoFrame; lists &= lists - 1) {
    const auto list = static_cast<unsigned>(std::countr_zero(lists));
    const bool longest = list == kLastFrameList;
    int tries = longest ? kMaxLongTries : kMaxTries;
    for (FrameIndex run = lists_[list];
         run != kNoFrame && (tries-- > 0 || (longest && best == kNoFrame));
         run = zone_.super_slab(run).next) {
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
void FrameRuns::FileRun(FrameIndex first, std::uint32_t frames) {
  zone_.super_slab(first).run_frames = frames;
  zone_.super_slab(first + frames - 1).run_frames = frames;
  Push(first, ListOf(frames));
}

void FrameRuns::Cut(FrameIndex first, std::uint32_t frames) {
  const FrameIndex start = StartOf(first);
  const FrameIndex end = start + zone_.super_slab(start).run_frames;
  Unlist(start);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).run_frames = 0;
    MarkFree(frame, false);
  }
  if (start != first) FileRun(start, first - start);
  if (first + frames != end) FileRun(first + frames, end - first - frames);
}

std::uint32_t FrameRuns::LongestUnits() const {
  if (non_empty_ == 0) return 0;
  const auto list = static_cast<std::uint32_t>(std::bit_width(non_empty_)) - 1;
  return list < kFirstFrameList
             ? list
             : (list - kFirstFrameList + 1) * kUnitsPerSuperSlab;
}

void FrameRuns::CheckInvariants() const {
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    HAK_CHECK_EQ((MapWord(frame) >> (frame & 63) & 1) != 0,
                 zone_.super_slab(frame).run_frames != 0);  // RU3
  }
  for (unsigned list = 1; list < kListCount; ++list) {
    if ((non_empty_ >> list & 1) == 0) continue;
    FrameIndex previous = kNoFrame;
    for (FrameIndex frame = lists_[list]; frame != kNoFrame;
         frame = zone_.super_slab(frame).next) {
      const SuperSlab& slab = zone_.super_slab(frame);
      HAK_CHECK_EQ(slab.list, list);
      HAK_CHECK_EQ(slab.previous, previous);
      if (list < kFirstFrameList) {  // RU1
        HAK_CHECK_EQ(LongestRun32(slab.free_units), list);
        HAK_CHECK_EQ(slab.run_frames, 0U);
      } else {  // RU2
        HAK_CHECK_EQ(ListOf(slab.run_frames), list);
        const FrameIndex last = frame + slab.run_frames - 1;
        HAK_CHECK_EQ(zone_.super_slab(last).run_frames, slab.run_frames);
        HAK_CHECK_EQ(StartOf(last), frame);  // RU3
        HAK_CHECK(frame == 0 || !IsFree(frame - 1));
        HAK_CHECK(!IsFree(last + 1));
      }
      previous = frame;
    }
  }
}

// It may have made a run longer.
void UnmappedFrames::Note(FrameIndex frame) {
  ++count_;
  most_ = kNoFrame;
  from_ = std::min(from_, frame);
}

FrameIndex UnmappedFrames::Find(FrameIndex frames) {
  if (frames > std::min(count_, most_)) return kNoFrame;
  FrameIndex lowest = zone_.frame_count();
  FrameIndex longest = 0;
  FrameIndex run = 0;
  FrameIndex frame = from_;
  for (; frame < zone_.frame_count() && run != frames; ++frame) {
    const bool first_of_kind =
        frame != 0 &&
        zone_.super_slab(frame).huge != zone_.super_slab(frame - 1).huge;
    if (first_of_kind || !Has(frame)) run = 0;
    if (!Has(frame)) continue;
    lowest = std::min(lowest, frame);
    longest = std::max(longest, ++run);
  }
  from_ = lowest;
  if (run == frames) return frame - run;
  most_ = longest;
  return kNoFrame;
}

VmStatus UnmappedFrames::Map(FrameIndex first, FrameIndex frames,
                             Access access) {
  const VmStatus status = zone_.Remap(memory_, first, frames, access);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    if (!Has(frame)) --count_;
  }
  return status;
}

void UnmappedFrames::CheckInvariants() const {
  FrameIndex count = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    count += Has(frame) ? 1U : 0U;
  }
  HAK_CHECK_EQ(count, count_);  // UF1
}

}  // namespace hakmem
