// Blocks of other heaps that a thread has freed, on their way.
//
// Owns: nothing; its magazine is the heap's. Called by: BlockCache,
// ThreadHeap. Thread-safety: the heap's owner.
//
// Invariants:
//   OB1: a block in an outbox is another heap's, of the outbox's class, and
//        Queued, unless it was freed twice at once (HeapStore::Dequeue).
#ifndef HAKMEM_ALLOCATOR_HEAP_OUTBOX_H_
#define HAKMEM_ALLOCATOR_HEAP_OUTBOX_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/heap/magazine.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

// Whether a thread hands out what it freed of others' blocks. Where blocks
// rest, who frees a block must not decide who gets it.
template <const Config& kConfig>
inline constexpr bool kReusesForeign =
    !kConfig.delay_reuse && !kConfig.check_header_on_reuse;
// Of shorter blocks, threads would share cache lines.
inline constexpr std::size_t kMinForeignBytes = 64;
constexpr bool IsReused(SizeClass size_class) {
  return ClassBytes(size_class) >= kMinForeignBytes;
}

// A class's magazine of them; without one, it is both empty and full.
struct Outbox {
  MagazineTop top = 0;
  std::uint32_t full = 0;  // the low half of the top of a full one

  // False: there is no room.
  HAK_ALWAYS_INLINE bool TryPush(void* block) {
    if (static_cast<std::uint32_t>(top) == full) return false;
    top += kMagazineSlotBytes;
    *reinterpret_cast<void**>(top) = block;
    return true;
  }
  // Takes an empty magazine, or none (0).
  void Load(MagazineTop empty, std::uint32_t capacity) {
    top = empty;
    full =
        empty == 0
            ? 0
            : static_cast<std::uint32_t>(empty + capacity * kMagazineSlotBytes);
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_OUTBOX_H_
