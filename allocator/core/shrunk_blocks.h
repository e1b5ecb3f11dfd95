// Shrunk blocks: those for which a smaller class would do. They stay where they
// are, or a larger class served a Tiny one: the fine zone is full, or the heap
// has few blocks (docs/decisions/0092).
//
// Owns: nothing; their headers have the class of what was asked for
// (block_header.h, H4). Called by: Allocator's slow paths, in variants without
// bounds. Thread-safety: any thread; one exchange decides between those that
// change or free a block at once.
#ifndef HAKMEM_ALLOCATOR_CORE_SHRUNK_BLOCKS_H_
#define HAKMEM_ALLOCATOR_CORE_SHRUNK_BLOCKS_H_

#include <atomic>
#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// Writes down for which class a live block is. False: it was not as was
// thought.
inline bool SetAskedClass(std::atomic<HeaderByte>& header,
                          SizeClass asked_class, SizeClass new_class) {
  HeaderByte found = MakeHeader(BlockState::kLive, asked_class + 1U);
  return header.compare_exchange_strong(
      found, MakeHeader(BlockState::kLive, new_class + 1U),
      std::memory_order_relaxed);
}

// A Pool block keeps its place while at least half of it is wanted, and a
// shrunk block while as much of it is wanted as before.
HAK_ALWAYS_INLINE bool TryStay(const Region& region, void* pointer,
                               SizeClass size_class, SizeClass asked_class,
                               std::size_t size_bytes) {
  const std::size_t block_bytes = ClassBytes(size_class);
  if (size_bytes > block_bytes) return false;
  const bool is_half = !IsTiny(size_class) && size_bytes >= block_bytes / 2;
  const bool is_as_before =
      asked_class != size_class && ClassOf(size_bytes) >= asked_class;
  const Zone& zone = ZoneOfClass(region, size_class);
  return (is_half || is_as_before) &&
         SetAskedClass(zone.header(reinterpret_cast<Address>(pointer)),
                       asked_class, ClassOf(size_bytes));
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_SHRUNK_BLOCKS_H_
