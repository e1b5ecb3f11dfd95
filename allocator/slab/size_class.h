// Size classes: which sizes share a class, and the layout of their slabs.
//
// Owns: the class table, computed at compile time. Called by: slab and above.
// Thread-safety: constants.
//
// 16 to 128 bytes by 16, then four classes per doubling up to 64 KiB (the
// spacing of jemalloc and snmalloc). Of a block over 128 bytes at most 20 % is
// slack, of a smaller one at most 15 bytes.
//
// Invariants:
//   SC1: class sizes grow strictly; each Tiny size is a multiple of the fine
//       granule, each Pool size of the coarse one.
//   SC2: a class's slab holds at least 4 blocks.
//   SC3: blocks start at multiples of their size from the slab's base, and a
//       slab's base is aligned to its own length: a class whose size is a
//       power of two is aligned to it.
#ifndef HAKMEM_ALLOCATOR_SLAB_SIZE_CLASS_H_
#define HAKMEM_ALLOCATOR_SLAB_SIZE_CLASS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/units.h"
#include "allocator/superslab/region.h"

namespace hakmem {

using SizeClass = std::uint8_t;

inline constexpr unsigned kClassCount = 44;
inline constexpr unsigned kTinyClassCount = 20;
inline constexpr std::size_t kMaxTinyBytes = 1 * kKiB;
inline constexpr std::size_t kMaxPoolBytes = 64 * kKiB;

struct ClassLayout {
  std::uint32_t block_bytes;
  std::uint32_t slab_units;  // 1 or 4
  std::uint32_t capacity;    // blocks of a slab
  std::uint32_t reciprocal;  // ceil(2^31 / (block_bytes / 16))
};

namespace internal {

// n * ceil(2^31 / d) >> 31 == n / d while n * d < 2^31; here n is at most
// 65,536 granules of a slab and d at most 4,096 granules of a block.
inline constexpr unsigned kReciprocalShift = 31;

constexpr std::uint32_t ClassBytes(unsigned size_class) {
  if (size_class < 8) return (size_class + 1) * 16;
  const unsigned doubling = (size_class - 8) / 4;
  const unsigned step = (size_class - 8) % 4;
  return (128U << doubling) + (step + 1) * (32U << doubling);
}

// Few blocks to a slab would make slabs come and go; long slabs would keep
// memory from other classes. Four blocks are enough (docs/decisions/0012).
constexpr std::uint32_t SlabUnits(std::uint32_t block_bytes) {
  return block_bytes <= 16 * kKiB ? 1 : 4;
}

constexpr std::array<ClassLayout, kClassCount> MakeClassLayouts() {
  std::array<ClassLayout, kClassCount> layouts{};
  for (unsigned i = 0; i < kClassCount; ++i) {
    const std::uint32_t bytes = ClassBytes(i);
    const std::uint32_t units = SlabUnits(bytes);
    const auto slab_bytes = static_cast<std::uint32_t>(units * kUnitBytes);
    const std::uint64_t granules = bytes / kMinAlignmentBytes;
    layouts[i] = {bytes, units, slab_bytes / bytes,
                  static_cast<std::uint32_t>(DivideRoundUp(
                      std::uint64_t{1} << kReciprocalShift, granules))};
  }
  return layouts;
}

}  // namespace internal

inline constexpr std::array<ClassLayout, kClassCount> kClassLayouts =
    internal::MakeClassLayouts();

constexpr std::size_t ClassBytes(SizeClass size_class) {
  return kClassLayouts[size_class].block_bytes;
}
constexpr bool IsTiny(SizeClass size_class) {
  return size_class < kTinyClassCount;
}

namespace internal {

constexpr SizeClass SmallestClassFor(std::size_t size_bytes) {
  SizeClass size_class = 0;
  while (ClassBytes(size_class) < size_bytes) ++size_class;
  return size_class;
}

// Entry i: the class of sizes in (16 * (i - 1), 16 * i].
constexpr auto MakeTinyTable() {
  std::array<SizeClass, kMaxTinyBytes / kMinAlignmentBytes + 1> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = SmallestClassFor(i * kMinAlignmentBytes);
  }
  return table;
}

// Entry i: the class of sizes in (256 * (i - 1), 256 * i].
constexpr auto MakePoolTable() {
  constexpr std::size_t kStepBytes = std::size_t{1} << kCoarseGranuleShift;
  std::array<SizeClass, kMaxPoolBytes / kStepBytes + 1> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = SmallestClassFor(i * kStepBytes);
  }
  return table;
}

alignas(64) inline constexpr auto kTinyTable = MakeTinyTable();
alignas(64) inline constexpr auto kPoolTable = MakePoolTable();

}  // namespace internal

// `size_bytes` <= kMaxTinyBytes.
HAK_ALWAYS_INLINE constexpr SizeClass TinyClassOf(std::size_t size_bytes) {
  return internal::kTinyTable[(size_bytes + kMinAlignmentBytes - 1) /
                              kMinAlignmentBytes];
}
// kMaxTinyBytes < `size_bytes` <= kMaxPoolBytes.
HAK_ALWAYS_INLINE constexpr SizeClass PoolClassOf(std::size_t size_bytes) {
  constexpr std::size_t kStepBytes = std::size_t{1} << kCoarseGranuleShift;
  return internal::kPoolTable[(size_bytes + kStepBytes - 1) / kStepBytes];
}
// `size_bytes` <= kMaxPoolBytes.
HAK_ALWAYS_INLINE constexpr SizeClass ClassOf(std::size_t size_bytes) {
  return size_bytes <= kMaxTinyBytes ? TinyClassOf(size_bytes)
                                     : PoolClassOf(size_bytes);
}

// The smallest class of the coarse zone that does for all that a Tiny class
// does for, also for alignments: those that divide its size.
constexpr SizeClass CoarseClassFor(SizeClass tiny_class) {
  const std::size_t bytes = ClassBytes(tiny_class);
  return ClassOf(RoundUp(kMaxTinyBytes + 1, bytes & (0 - bytes)));
}

// The sizes that a class serves: [first, first + count).
struct ClassSizes {
  std::uint32_t first_bytes;
  std::uint32_t count;
};

// By header code, for all that six bits can hold; what is no class's code
// serves no size.
inline constexpr auto kSizesOfCode = [] {
  std::array<ClassSizes, 64> table{};
  std::uint32_t first_bytes = 1;
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto last_bytes =
        static_cast<std::uint32_t>(ClassBytes(static_cast<SizeClass>(i)));
    table[i + 1] = {first_bytes, last_bytes - first_bytes + 1};
    first_bytes = last_bytes + 1;
  }
  return table;
}();

// The smallest class that holds `size_bytes` at multiples of `alignment_bytes`
// (a power of two); both at most kMaxPoolBytes. That is the class of the next
// multiple: of the classes between two powers of two each is a multiple of a
// quarter of the lower one, and so are all multiples of greater alignments.
constexpr SizeClass AlignedClassOf(std::size_t size_bytes,
                                   std::size_t alignment_bytes) {
  size_bytes -= PlantedDefect(Defect::kClassOneByteShort) && size_bytes > 1;
  return ClassOf(
      RoundUp(std::max<std::size_t>(size_bytes, 1), alignment_bytes));
}

// The number of whole blocks before `offset_bytes` in a slab of the class; a
// multiplication instead of a division. Exact for all offsets of a slab (the
// unit test tries each).
HAK_ALWAYS_INLINE constexpr std::uint32_t BlockIndexAt(
    const ClassLayout& layout, std::uint32_t offset_bytes) {
  return static_cast<std::uint32_t>(
      (std::uint64_t{offset_bytes / kMinAlignmentBytes} * layout.reciprocal) >>
      internal::kReciprocalShift);
}
HAK_ALWAYS_INLINE constexpr std::uint32_t BlockIndexAt(
    SizeClass size_class, std::uint32_t offset_bytes) {
  return BlockIndexAt(kClassLayouts[size_class], offset_bytes);
}

static_assert(ClassBytes(kTinyClassCount - 1) == kMaxTinyBytes);
static_assert(ClassBytes(kClassCount - 1) == kMaxPoolBytes);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SLAB_SIZE_CLASS_H_
