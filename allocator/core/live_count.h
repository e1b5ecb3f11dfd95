// The count of all blocks that the program holds, by the tables alone.
//
// Owns: nothing. Called by: frontend, when it is asked to tell; Allocator, for
// the event of a refused call. Thread-safety: any thread; no lock is held but
// for Huge blocks. Blocks that other threads allocate or free meanwhile may be
// counted or not.
//
// It reads a record for each unit of 64 KiB that was ever mapped, and a header
// byte for each block of a slab: 34 to 63 ms per GB of blocks of 16 bytes. So
// it is done when somebody asks, or once in a while, and never for each call.
#ifndef HAKMEM_ALLOCATOR_CORE_LIVE_COUNT_H_
#define HAKMEM_ALLOCATOR_CORE_LIVE_COUNT_H_

#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {

// Blocks count with all bytes that the program may use of them.
struct LiveCount {
  std::uint64_t blocks = 0;  // Huge ones, too
  std::uint64_t bytes = 0;
  std::uint64_t huge_blocks = 0;
  std::uint64_t huge_bytes = 0;
  std::uint64_t guarded_bytes = 0;  // of sampled blocks between guard pages
  // Blocks of slabs: free, in caches or not, or on the way to their owner.
  std::uint64_t free_blocks = 0;
  ClassStatistics classes[kClassCount];  // of slabs
};

LiveCount CountLive(Ace& ace, const GuardedBlocks& guarded);

// Without Huge and guarded blocks: no lock is held.
LiveCount CountInUnits(Ace& ace);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LIVE_COUNT_H_
