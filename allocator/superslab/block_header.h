// The encodings of the two tables that every free reads: the detached header
// (one byte per granule) and the unit record (one word per unit).
//
// Owns: the encodings. Called by: superslab and every layer above.
// Thread-safety: pure functions.
//
// Invariants:
//   H1: a header byte is 0 exactly where no block starts.
//   H2: otherwise its low six bits are a code: size class + 1, kLargeCode or
//       kSampledCode; its high two bits are the block's state.
//   H3: a unit record is 0 when the unit belongs to nobody. Else its low byte
//       is the header byte of the unit's live blocks. Its other bits are the
//       owner: a heap's id, or kSpanOwner.
//   H4: a slab's block that was asked for with a smaller class is *shrunk*:
//       live with the smaller class's code. Variants with bounds have none.
//   H5: a block of which the heap profile takes a sample is *sampled*: live
//       with kSampledCode, also if there was no room to keep the sample.
//   H6: a span or Huge block is Queued while a thread has *claimed* it, to
//       resize or free it; one exchange from Live to Queued decides which.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_HEADER_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_HEADER_H_

#include <cstdint>

namespace hakmem {

enum class BlockState : std::uint8_t {
  kFree = 0,    // in a magazine or a slab's bitmap, or resting
  kLive = 1,    // the user's
  kQueued = 2,  // freed by another thread, on its way to the owner; or being
                // changed
};

using HeaderByte = std::uint8_t;
using UnitRecord = std::uint32_t;
using HeapId = std::uint32_t;

inline constexpr HeaderByte kNoBlock = 0;
inline constexpr unsigned kCodeBits = 6;
inline constexpr unsigned kSampledCode = 61;
inline constexpr unsigned kLargeCode = 62;  // spans and Huge blocks

// Heap ids are 1 to kMaxHeapId; 0 is nobody.
inline constexpr unsigned kOwnerShift = 8;
inline constexpr HeapId kMaxHeapId = (HeapId{1} << 20) - 1;
inline constexpr HeapId kSpanOwner = 0xfffffe;
// The id of the heap that a thread without a heap points to; owns nothing.
inline constexpr HeapId kNoHeapId = 0xffffff;
static_assert(kMaxHeapId < kSpanOwner);

constexpr HeaderByte MakeHeader(BlockState state, unsigned code) {
  return static_cast<HeaderByte>((static_cast<unsigned>(state) << kCodeBits) |
                                 code);
}
constexpr BlockState HeaderState(HeaderByte header) {
  return static_cast<BlockState>(header >> kCodeBits);
}
constexpr unsigned HeaderCode(HeaderByte header) {
  return header & ((1U << kCodeBits) - 1);
}
// Adding this to a Free header makes it Live.
inline constexpr unsigned kLiveBit = 1U << kCodeBits;

constexpr UnitRecord MakeUnitRecord(HeapId owner, HeaderByte live_header) {
  return (owner << kOwnerShift) | live_header;
}
constexpr HeapId UnitOwner(UnitRecord record) { return record >> kOwnerShift; }
constexpr HeaderByte UnitLiveHeader(UnitRecord record) {
  return static_cast<HeaderByte>(record);
}
inline constexpr HeaderByte kLiveLarge =
    MakeHeader(BlockState::kLive, kLargeCode);
inline constexpr HeaderByte kClaimedLarge =
    MakeHeader(BlockState::kQueued, kLargeCode);
inline constexpr HeaderByte kFreeLarge =
    MakeHeader(BlockState::kFree, kLargeCode);
inline constexpr UnitRecord kSpanRecord =
    MakeUnitRecord(kSpanOwner, kLiveLarge);
// Whether a shrunk block's header stands in a slab's unit.
constexpr bool IsShrunkHeader(HeaderByte header, UnitRecord record) {
  return HeaderState(header) == BlockState::kLive && HeaderCode(header) != 0 &&
         HeaderCode(header) < HeaderCode(UnitLiveHeader(record)) &&
         UnitOwner(record) - 1 < kMaxHeapId;
}
inline constexpr HeaderByte kSampledHeader =
    MakeHeader(BlockState::kLive, kSampledCode);
// Whether a sampled block's header stands in a slab's or span's unit.
constexpr bool IsSampledHeader(HeaderByte header, UnitRecord record) {
  return header == kSampledHeader && record != 0;
}
// Whether a block is live, though its header is not what the unit's record
// says.
constexpr bool IsMarkedHeader(HeaderByte header, UnitRecord record) {
  return IsShrunkHeader(header, record) || IsSampledHeader(header, record);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_HEADER_H_
