#include "allocator/ace/unmapped_frames.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "allocator/base/check.h"

namespace hakmem {

// It may have made a run longer.
void UnmappedFrames::Note() {
  ++count_;
  most_ = kNoFrame;
  std::ranges::fill(from_, 0);
}

FrameIndex UnmappedFrames::Find(FrameIndex frames) {
  if (frames > std::min(count_, most_)) return kNoFrame;
  const auto size =
      std::min(static_cast<std::size_t>(std::bit_width(frames / 2)),
               std::size(from_) - 1);
  const FrameIndex least = FrameIndex{1} << size;
  FrameIndex first = zone_.frame_count();  // of a run of `least`
  FrameIndex longest = least - 1;
  FrameIndex run = 0;
  FrameIndex frame = from_[size];
  for (; frame < zone_.frame_count() && run != frames; ++frame) {
    const bool first_of_kind =
        frame != 0 &&
        zone_.super_slab(frame).huge != zone_.super_slab(frame - 1).huge;
    if (first_of_kind || !Has(frame)) run = 0;
    if (Has(frame)) ++run;
    longest = std::max(longest, run);
    if (run == least) first = std::min(first, frame + 1 - run);
  }
  from_[size] = first;
  if (run == frames) return frame - run;
  most_ = longest;
  return kNoFrame;
}

VmStatus UnmappedFrames::Map(VirtualMemory& memory, FrameIndex first,
                             FrameIndex frames, Access access) {
  const VmStatus status = zone_.Remap(memory, first, frames, access);
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
