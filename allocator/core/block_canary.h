// The canary: bytes behind what the program asked for that change when it
// writes past its end.
//
// Owns: their value and place. Called by: core.
// Thread-safety: as the block's own memory.
//
// The bytes follow from two secrets of the process and the block's address, so
// that who wants to write them has to read them from the same block.
// (StackGuard, Cowan et al., USENIX Security 1998; for heaps: Robertson et al.,
// LISA 2003.) The product is folded, because another multiplication would undo
// a plain one: one canary and its block's address would tell all others. It is
// the mixer of wyhash and no cipher: nothing is known of what many canaries
// tell. They are the sixteen bytes after the last one asked for, or as many as
// the block has; what longer slack has behind them is zero, and is looked at
// with the fill when the block is used again.
//
// Invariants:
//   N1: no byte that was asked for is part of the canary.
#ifndef HAKMEM_ALLOCATOR_CORE_BLOCK_CANARY_H_
#define HAKMEM_ALLOCATOR_CORE_BLOCK_CANARY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"

namespace hakmem {

namespace internal {

struct alignas(16) CanaryMask {
  std::uint8_t bytes[16];
};
// Entry n: the last n of the sixteen.
inline constexpr auto kCanaryMasks = [] {
  std::array<CanaryMask, 17> masks{};
  for (std::size_t n = 0; n <= 16; ++n) {
    for (std::size_t i = 16 - n; i < 16; ++i) masks[n].bytes[i] = 0xff;
  }
  return masks;
}();

}  // namespace internal

struct CanarySecret {
  std::uint64_t mask = 0;
  std::uint64_t factor = 0;
};

// Where the canary of a block is, and what it is.
class BlockCanary {
 public:
  static constexpr std::size_t kMaxBytes = 16;

  // Of the block at `block`, of `block_bytes` (at least 16), of which fewer,
  // `size_bytes`, were asked for.
  HAK_ALWAYS_INLINE BlockCanary(Address block, std::size_t block_bytes,
                                std::size_t size_bytes,
                                const CanarySecret& secret) {
    const std::size_t slack_bytes = block_bytes - size_bytes;
    mask_ = &internal::kCanaryMasks[std::min(slack_bytes, kMaxBytes)];
    start_ = block + std::min(size_bytes, block_bytes - kMaxBytes);
    const Wide product = Wide{block ^ secret.mask} * secret.factor;
    const std::uint64_t word = static_cast<std::uint64_t>(product) ^
                               static_cast<std::uint64_t>(product >> 64);
    value_ = Vector{word, word};
  }

  // The block is zero before.
  HAK_ALWAYS_INLINE void Place() const { Store(value_ & Mask()); }
  // The same behind what the program wrote.
  void PlaceBehindData() const {
    Store((Load() & ~Mask()) | (value_ & Mask()));
  }
  // Before the size changes: the canary's bytes are zero again.
  void Remove() const { Store(Load() & ~Mask()); }

  HAK_ALWAYS_INLINE bool IsIntact() const {
    const Vector wrong = (Load() ^ value_) & Mask();
    return (wrong[0] | wrong[1]) == 0;
  }
  // The address of the first damaged byte; 0: none.
  Address FirstDamage() const {
    const Vector wrong = (Load() ^ value_) & Mask();
    std::uint8_t bytes[kMaxBytes];
    __builtin_memcpy(bytes, &wrong, sizeof bytes);
    for (std::size_t i = 0; i < kMaxBytes; ++i) {
      if (bytes[i] != 0) return start_ + i;
    }
    return 0;
  }

 private:
  using Vector = std::uint64_t __attribute__((vector_size(kMaxBytes)));
  __extension__ using Wide = unsigned __int128;

  HAK_ALWAYS_INLINE Vector Mask() const {
    Vector mask;
    __builtin_memcpy(&mask, mask_, sizeof mask);
    return mask;
  }
  HAK_ALWAYS_INLINE Vector Load() const {
    Vector vector;
    __builtin_memcpy(&vector, reinterpret_cast<const void*>(start_),
                     sizeof vector);
    return vector;
  }
  HAK_ALWAYS_INLINE void Store(Vector vector) const {
    __builtin_memcpy(reinterpret_cast<void*>(start_), &vector, sizeof vector);
  }

  Address start_;
  const internal::CanaryMask* mask_;
  Vector value_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_BLOCK_CANARY_H_
