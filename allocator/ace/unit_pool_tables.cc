// UnitPool: giving descriptors back to the kernel.

#include <utility>

#include "allocator/ace/table_pages.h"
#include "allocator/ace/unit_pool.h"

namespace hakmem {
namespace {

// The descriptors of so many SuperSlabs go back at once: nobody can have these,
// 128 MiB, meanwhile.
constexpr FrameIndex kMostFrames = 64;

}  // namespace

// Whether nobody has any of it, and none of it is old data.
bool UnitPool::IsCleanFrame(FrameIndex frame, bool kept) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  return (kept ? slab.kept_units : slab.free_units) == kAllUnits &&
         (slab.dirty_units | slab.purging_units) == 0;
}

void UnitPool::PurgeDescriptors(VirtualMemory& memory, FrameIndex& next) {
  const FrameIndex count = zone_.frame_count();
  if (next == 0 && !std::exchange(has_idle_descriptors_, false)) next = count;
  while (next < count) {
    const FrameIndex first = next++;
    const bool kept = zone_.super_slab(first).kept_units != 0;
    if (!IsCleanFrame(first, kept)) continue;
    bool described = zone_.super_slab(first).described;
    for (;
         next < count && next - first < kMostFrames && IsCleanFrame(next, kept);
         ++next) {
      described |= zone_.super_slab(next).described;
    }
    if (!described) continue;
    const DirtyRun run = {FirstUnitOfFrame(first),
                          (next - first) * kUnitsPerSuperSlab, kept};
    Purging purging = {run, FutexLock::Mark(), nullptr};
    StartPurge(purging);
    bool purged = false;
    unsigned calls = 0;
    {
      const FutexLockPause pause(lock_);
      purged = PurgeDescriptorsOf(memory, zone_, run.first, run.units, calls);
    }
    purge_calls_ += calls;
    for (FrameIndex frame = first; purged && frame < next; ++frame) {
      zone_.super_slab(frame).described = false;
    }
    EndPurge(purging, /*purged=*/true);
    if (!purged) next = kNoFrame;
    return;
  }
  next = kNoFrame;
}

}  // namespace hakmem
