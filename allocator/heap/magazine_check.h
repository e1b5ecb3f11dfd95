// What every block in a magazine is.
//
// Owns: nothing. Called by: the checks of BlockCache and HeapStore.
// Thread-safety: as the magazine.
#ifndef HAKMEM_ALLOCATOR_HEAP_MAGAZINE_CHECK_H_
#define HAKMEM_ALLOCATOR_HEAP_MAGAZINE_CHECK_H_

#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/config/config.h"
#include "allocator/heap/magazine.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// The zone of a class's blocks.
inline const Zone& ZoneOfClass(const Region& region, SizeClass size_class) {
  return IsTiny(size_class) ? region.fine() : region.coarse();
}

// Each block of the magazine bears the header Free of the class, and its unit
// the record of the class, and, where heaps hand out no others, of `heap`.
template <const Config& kConfig>
void CheckMagazine(const Zone& zone, SizeClass size_class, MagazineTop top,
                   HeapId heap) {
  for (std::uint32_t i = 0; i < MagazineCount(top); ++i) {
    const auto block = reinterpret_cast<Address>(MagazineBlocks(top)[i]);
    HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                 MakeHeader(BlockState::kFree, size_class + 1U));
    const UnitRecord record =
        zone.unit_record(zone.UnitOf(block)).load(std::memory_order_relaxed);
    HAK_CHECK_EQ(UnitLiveHeader(record),
                 MakeHeader(BlockState::kLive, size_class + 1U));
    if constexpr (!kReusesForeign<kConfig>) {
      HAK_CHECK_EQ(UnitOwner(record), heap);
    }
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_MAGAZINE_CHECK_H_
