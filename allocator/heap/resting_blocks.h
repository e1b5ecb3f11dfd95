// The freed blocks of a class that rest before they are used again: how many,
// and where.
//
// Owns: the layout. Called by: BlockCache, in variants in which blocks rest.
// Thread-safety: belongs to the heap's owner.
#ifndef HAKMEM_ALLOCATOR_HEAP_RESTING_BLOCKS_H_
#define HAKMEM_ALLOCATOR_HEAP_RESTING_BLOCKS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

// How many blocks of a class rest, at least, and at most: the larger ones, the
// fewer.
inline constexpr std::uint32_t kMinResting = 4;
inline constexpr std::uint32_t kMaxResting = 64;
inline constexpr std::size_t kMaxRestingBytes = 32 * kKiB;
constexpr std::uint32_t MaxResting(SizeClass size_class) {
  return std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::size_t>(
      kMaxRestingBytes / ClassBytes(size_class), kMinResting, kMaxResting)));
}
// Random numbers shifted by so much are below half of `slots`.
constexpr std::uint8_t RestShift(std::uint32_t slots) {
  return static_cast<std::uint8_t>(65 - std::bit_width(slots / 2));
}

// State of a class on the owner's paths, in variants in which blocks rest.
struct RestingCache {
  void** rest_slots = nullptr;
  std::uint32_t rest_next = 0;
  std::uint32_t rest_mask = kMinResting - 1;
  std::uint32_t rest_begin = 0;  // of this lap
  PiecedLength length;
  std::uint8_t rest_shift = RestShift(kMinResting);
};
// The slots of all classes before the class, as they lie one after another.
constexpr std::uint32_t RestSlotsBefore(unsigned size_class) {
  std::uint32_t slots = 0;
  for (unsigned i = 0; i < size_class; ++i) {
    slots += MaxResting(static_cast<SizeClass>(i));
  }
  return slots;
}
struct RestingSlots {
  void Clear() {
    for (void*& slot : slots) slot = nullptr;
  }

  void* slots[RestSlotsBefore(kClassCount)] = {};
  // Blocks from slabs, by class, up to what matters.
  std::uint32_t taken[kClassCount] = {};
};
struct NoResting {};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_RESTING_BLOCKS_H_
