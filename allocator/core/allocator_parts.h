// The parts of an allocator that its header need not know, and the allocator
// with them.
//
// Owns: ACE's parts, the guards, the heap profile, recovery. Called by: who has
// an allocator. Thread-safety: as each part says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_PARTS_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_PARTS_H_

#include "allocator/ace/ace.h"
#include "allocator/ace/ace_parts.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"  // IWYU pragma: export
#include "allocator/core/host.h"
#include "allocator/core/recovery.h"          // IWYU pragma: export
#include "allocator/core/upkeep.h"            // IWYU pragma: export
#include "allocator/guards/guarded_blocks.h"  // IWYU pragma: export
#include "allocator/platform/virtual_memory.h"
#include "allocator/profile/heap_profile.h"  // IWYU pragma: export

namespace hakmem {

template <const Config& kConfig>
struct AllocatorParts {
  constexpr AllocatorParts(VirtualMemory& memory, const Host& host,
                           Ace& whole_ace)
      : ace(whole_ace, ranges.get()),
        guards(memory),
        profile(memory),
        recovery(host, whole_ace, Allocator<kConfig>::kSlackBytes) {}
  AllocatorParts(const AllocatorParts&) = delete;
  AllocatorParts& operator=(const AllocatorParts&) = delete;

  [[no_unique_address]] RoomForRanges<kConfig.separate_classes> ranges;
  AceParts ace;
  GuardedBlocks guards;
  HeapProfile profile;
  Recovery recovery;
};

template <const Config& kConfig>
class WholeAllocator : public Allocator<kConfig> {
 public:
  constexpr WholeAllocator(VirtualMemory& memory, const Host& host)
      : Allocator<kConfig>(memory, host, parts_),
        parts_(memory, host, this->ace()) {}

  constexpr const AllocatorParts<kConfig>& parts() const { return parts_; }

 private:
  AllocatorParts<kConfig> parts_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_PARTS_H_
