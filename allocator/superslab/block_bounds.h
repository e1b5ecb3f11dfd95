// The encoding of the table that tells how long each block of a slab was asked
// to be, and by which kind of call.
//
// Owns: the encoding. Called by: core, tests.
// Thread-safety: an entry is written by whoever hands its block out, read by
// whoever holds the block.
//
// The table has one byte per granule, as that of the headers; an entry lies
// where its block's header lies in the other, and reaches into bytes of the
// block's further granules. So it needs blocks of two fine granules, or four
// coarse ones: a variant with bounds has no blocks of 16 bytes.
//
// Invariants:
//   BB1: a live block is kMinSlackBytes longer than its entry says, or more.
//   BB2: the entry of a block that is not live is that of its last life, or 0:
//       then nobody has had it since the table's page came from the kernel.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_BOUNDS_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_BOUNDS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "allocator/base/compiler.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// A block of a variant with bounds has this much more than was asked for, at
// least: a canary; and is at least so long.
inline constexpr std::size_t kMinSlackBytes = 8;
inline constexpr std::size_t kMinBoundedBlockBytes = 32;

// `kTiny`: of the fine zone, where sizes need 10 bits; else of the coarse one.
template <bool kTiny>
struct BoundsEntry {
  using Word = std::conditional_t<kTiny, std::uint16_t, std::uint32_t>;
  static constexpr unsigned kGranuleShift =
      kTiny ? kFineGranuleShift : kCoarseGranuleShift;
  static constexpr unsigned kKindShift = kTiny ? 13 : 24;

  static constexpr Word Make(std::size_t size_bytes, BlockKind kind) {
    return static_cast<Word>(size_bytes |
                             (static_cast<std::size_t>(kind) << kKindShift));
  }
  static constexpr std::size_t SizeOf(Word word) {
    return word & ((Word{1} << kKindShift) - 1);
  }
  static constexpr BlockKind KindOf(Word word) {
    return static_cast<BlockKind>(word >> kKindShift);
  }

  // Entries need not be aligned.
  static HAK_ALWAYS_INLINE Word Load(const ZoneView& view, const void* block) {
    Word word = 0;
    std::memcpy(&word, At(view, block), sizeof word);
    return word;
  }
  // The same on paths that have the block's granule, too.
  static HAK_ALWAYS_INLINE Word LoadByGranule(const ZoneView& view,
                                              const void* block) {
    Word word = 0;
    const std::uint64_t granule =
        view.Granule(reinterpret_cast<Address>(block), kGranuleShift);
    std::memcpy(&word, reinterpret_cast<void*>(view.bounds + granule),
                sizeof word);
    return word;
  }
  static HAK_ALWAYS_INLINE void Store(const ZoneView& view, const void* block,
                                      Word word) {
    std::memcpy(At(view, block), &word, sizeof word);
  }

 private:
  static HAK_ALWAYS_INLINE void* At(const ZoneView& view, const void* block) {
    return reinterpret_cast<void*>(
        view.bounds_origin +
        (reinterpret_cast<Address>(block) >> kGranuleShift));
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_BOUNDS_H_
