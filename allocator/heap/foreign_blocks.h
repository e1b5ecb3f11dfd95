// Blocks of other heaps that a thread has freed and keeps, to hand them out
// itself.
//
// Owns: the list of each class. Called by: ThreadHeap (thread_heap_foreign.h),
// in variants in which freed blocks do not rest. Thread-safety: belongs to the
// heap's owner.
#ifndef HAKMEM_ALLOCATOR_HEAP_FOREIGN_BLOCKS_H_
#define HAKMEM_ALLOCATOR_HEAP_FOREIGN_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/heap/magazine.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

template <const Config& kConfig>
inline constexpr bool kKeepsForeign =
    !kConfig.delay_reuse && !kConfig.check_header_on_reuse;
// Of shorter blocks, threads would share cache lines.
inline constexpr std::size_t kMinForeignBytes = 64;

// So many of a class are kept: half a magazine, less of long blocks.
inline constexpr std::size_t kMaxForeignBytes = 32 * kKiB;
constexpr std::uint32_t MaxForeign(SizeClass size_class) {
  const auto of_bytes =
      static_cast<std::uint32_t>(kMaxForeignBytes / ClassBytes(size_class));
  return std::clamp<std::uint32_t>(of_bytes, 1, MaxRefill(size_class));
}

// A magazine of them; without one, nothing is kept.
struct ForeignBlocks {
  MagazineTop top = 0;
  std::uint32_t full = 0;

  // False: there is no room.
  HAK_ALWAYS_INLINE bool TryPush(void* block) {
    if (static_cast<std::uint32_t>(top) == full) return false;
    top += kMagazineSlotBytes;
    *reinterpret_cast<void**>(top) = block;
    return true;
  }
  // Takes an empty magazine, or none (0).
  void Load(MagazineTop empty, SizeClass size_class) {
    top = empty;
    full = empty == 0
               ? 0
               : static_cast<std::uint32_t>(empty + MaxForeign(size_class) *
                                                        kMagazineSlotBytes);
  }
};

template <bool kKept>
struct ForeignLists {
  ForeignBlocks lists[kClassCount];
  std::uint64_t classes = 0;  // bit c: class c has a magazine
  bool is_allowed = true;
};
template <>
struct ForeignLists<false> {};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_FOREIGN_BLOCKS_H_
