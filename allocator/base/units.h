// Sizes and ids that every layer shares, with their units in their names.
//
// Owns: nothing. Called by: every layer. Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_BASE_UNITS_H_
#define HAKMEM_ALLOCATOR_BASE_UNITS_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;
inline constexpr std::size_t kGiB = 1024 * kMiB;

// Every block is aligned to this (the ABI's max_align_t).
inline constexpr std::size_t kMinAlignmentBytes = 16;

// SuperSlab: the unit of commit, purge and huge pages.
inline constexpr unsigned kSuperSlabShift = 21;
inline constexpr std::size_t kSuperSlabBytes = std::size_t{1}
                                               << kSuperSlabShift;

// Unit: the grain of ownership inside a SuperSlab.
inline constexpr unsigned kUnitShift = 16;
inline constexpr std::size_t kUnitBytes = std::size_t{1} << kUnitShift;
inline constexpr unsigned kUnitsPerSuperSlab =
    static_cast<unsigned>(kSuperSlabBytes / kUnitBytes);
static_assert(kUnitsPerSuperSlab == 32, "a SuperSlab's units fill one word");

using Address = std::uintptr_t;

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_UNITS_H_
