// Clearing blocks, and finding out whether they are clear.
//
// Owns: what it knows of the processor. Called by: ace, core, heap.
// Thread-safety: as plain memory.
//
// Written out because what a copy of libc's costs to call is more than most
// blocks need, and because hakmem may itself be who exports `memset`.
#ifndef HAKMEM_ALLOCATOR_BASE_ZERO_BYTES_H_
#define HAKMEM_ALLOCATOR_BASE_ZERO_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "allocator/base/compiler.h"

namespace hakmem {

// The least length that ZeroShort and IsZeroShort are given.
inline constexpr std::size_t kMinShortBytes = 32;

namespace internal {

using ZeroVector = std::uint64_t __attribute__((vector_size(16)));
inline constexpr std::size_t kVectorBytes = sizeof(ZeroVector);
inline constexpr std::size_t kPieceBytes = 2 * kVectorBytes;
inline constexpr std::size_t kPiecedBytes = 4 * kPieceBytes;

HAK_ALWAYS_INLINE ZeroVector LoadVector(const char* from) {
  ZeroVector vector;
  __builtin_memcpy(&vector, from, kVectorBytes);
  return vector;
}
// `found` or all of `kBytes`, a multiple of a vector. What is aligned to one is
// read by the instruction that combines it.
template <std::size_t kBytes, std::size_t kAlignment = 1>
HAK_ALWAYS_INLINE ZeroVector OrOf(const char* from,
                                  ZeroVector found = ZeroVector()) {
  const char* const start =
      static_cast<const char*>(__builtin_assume_aligned(from, kAlignment));
  for (std::size_t at = 0; at < kBytes; at += kVectorBytes) {
    found |= LoadVector(start + at);
  }
  return found;
}
HAK_ALWAYS_INLINE bool IsZero(ZeroVector found) {
  return (found[0] | found[1]) == 0;
}
// By pieces: of the whole gcc makes `rep stos`, which takes longer.
HAK_ALWAYS_INLINE void ZeroPieces(char* at) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kPiecedBytes; i += kPieceBytes) {
    __builtin_memset(at + i, 0, kPieceBytes);
  }
}

}  // namespace internal

// The least that is cleared and looked at of a block that has as much. Up to
// here IsZeroShort looks at all of it.
inline constexpr std::size_t kMinPartBytes = 256;

// How long a block, or its beginning, is, and, if it is no longer than
// kPiecedBytes, where four pieces begin that cover it. They overlap instead of
// being counted: how many there are, where sizes vary, is guessed wrongly, and
// a wrong guess costs more than all four.
struct PiecedLength {
  constexpr PiecedLength() = default;
  // No more than `most_bytes` of a block, but kMinPartBytes at least.
  constexpr explicit PiecedLength(
      std::size_t block_bytes,
      std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max())
      : bytes(static_cast<std::uint32_t>(std::min<std::uint64_t>(
            block_bytes, std::max<std::uint64_t>(most_bytes, kMinPartBytes)))),
        is_part(bytes != block_bytes) {
    using internal::kPieceBytes;
    if (!IsPieced()) return;
    second = static_cast<std::uint8_t>(
        std::min(block_bytes - kPieceBytes, kPieceBytes));
    third = static_cast<std::uint8_t>(std::max(block_bytes, 2 * kPieceBytes) -
                                      2 * kPieceBytes);
  }

  constexpr bool IsPieced() const { return bytes <= internal::kPiecedBytes; }

  std::uint32_t bytes = 0;
  std::uint8_t second = 0;
  std::uint8_t third = 0;
  // Of a longer block: never of one that is pieced.
  bool is_part = false;
};

// Clears a short block.
HAK_ALWAYS_INLINE void ZeroShort(void* start, const PiecedLength& length) {
  using internal::kPieceBytes;
  using internal::kPiecedBytes;
  char* at = static_cast<char*>(start);
  const std::size_t bytes = length.bytes;
  if (length.IsPieced()) [[likely]] {
    const std::size_t second = length.second;
    const std::size_t third = length.third;
    __builtin_memset(at, 0, kPieceBytes);
    __builtin_memset(at + second, 0, kPieceBytes);
    __builtin_memset(at + third, 0, kPieceBytes);
    __builtin_memset(at + bytes - kPieceBytes, 0, kPieceBytes);
    return;
  }
  char* const last = at + bytes - kPiecedBytes;
  do {
    internal::ZeroPieces(at);
    at += kPiecedBytes;
    // Or the compiler would make a call of memset of it.
    __asm__("" : "+r"(at));
  } while (at < last);
  internal::ZeroPieces(last);
}

// Whether the first and last kPlaceBytes of a block of at least as many are
// zero, and eight places at equal distances between, or all that there is
// between, if it is less. `turn` moves the places: those of successive numbers
// fill the gaps evenly (by multiples of the golden ratio, Knuth, The Art of
// Computer Programming 3, 6.4). The block and its places between are aligned:
// so a place that is as long as a line of the cache is one.
template <std::size_t kPlaceBytes, std::size_t kAlignment>
HAK_ALWAYS_INLINE bool IsZeroInPlaces(const void* start, std::size_t bytes,
                                      std::uint32_t turn) {
  using internal::OrOf;
  constexpr unsigned kPlaces = 8;
  const char* const at = static_cast<const char*>(start);
  const std::size_t step = (bytes - kPlaceBytes) / kPlaces;
  internal::ZeroVector found = OrOf<kPlaceBytes, kAlignment>(
      at, OrOf<kPlaceBytes>(at + bytes - kPlaceBytes));
  const std::uint32_t part = turn * 0x9e3779b9U;  // of 2^32
  std::size_t place = std::uint64_t{part} * step >> 32;
  for (unsigned i = 0; i < kPlaces; ++i, place += step) {
    const char* const from = at + place / kAlignment * kAlignment;
    found = OrOf<kPlaceBytes, kAlignment>(from, found);
  }
  return internal::IsZero(found);
}

// Whether a short block is zero; beyond 288 bytes, whether it is in places. The
// block is of whole vectors. `turn()` is asked for places alone.
template <typename Turn>
HAK_ALWAYS_INLINE bool IsZeroShort(const void* start,
                                   const PiecedLength& length,
                                   const Turn& turn) {
  using internal::kPieceBytes;
  using internal::kVectorBytes;
  if (length.IsPieced()) [[likely]] {
    constexpr auto* kOr = &internal::OrOf<kPieceBytes, kVectorBytes>;
    const char* const at = static_cast<const char*>(start);
    internal::ZeroVector found = kOr(at, internal::ZeroVector());
    found = kOr(at + length.second, found);
    found = kOr(at + length.third, found);
    found = kOr(at + length.bytes - kPieceBytes, found);
    return internal::IsZero(found);
  }
  return IsZeroInPlaces<kPieceBytes, kVectorBytes>(start, length.bytes, turn());
}

// Whether all of so many bytes, a multiple of a vector, is zero.
template <std::size_t kBytes>
HAK_ALWAYS_INLINE bool IsZeroAll(const void* start) {
  return internal::IsZero(
      internal::OrOf<kBytes>(static_cast<const char*>(start)));
}

// Whether all of at least kMinPartBytes is zero.
inline bool IsZeroWhole(const void* start, std::size_t bytes) {
  constexpr std::size_t kStepBytes = kMinPartBytes;
  const char* at = static_cast<const char*>(start);
  const char* const last = at + bytes - kStepBytes;
  internal::ZeroVector found = internal::OrOf<kStepBytes>(last);
  for (; at < last; at += kStepBytes) found |= internal::OrOf<kStepBytes>(at);
  return internal::IsZero(found);
}

// Clears any length, and from 256 bytes on writes only where something is not
// zero: what a program did not write costs half as much then, stays clean in
// the caches, and pages that were never touched get no memory.
void ZeroBytes(void* start, std::size_t bytes);
// The same from kMinLongBytes on.
inline constexpr std::size_t kMinLongBytes = 256;
void ZeroLongBytes(void* start, std::size_t bytes);

// The first byte that is not zero; `bytes` if all are.
std::size_t FirstNonZero(const void* start, std::size_t bytes);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_ZERO_BYTES_H_
