// The canary: bytes behind what the program asked for that change when it
// writes past its end.
//
// Owns: their value, and what else is looked at behind a block's end. Called
// by: core. Thread-safety: as the block's own memory.
//
// They follow from two secrets of the process and the block's address, so that
// who wants to write them has to read them from the same block. (StackGuard,
// Cowan et al., USENIX Security 1998; for heaps: Robertson et al., LISA 2003.)
// The product is folded, because another multiplication would undo a plain one:
// one canary and its block's address would tell all others. It is the mixer of
// wyhash and no cipher: nothing is known of what many canaries tell. Behind the
// canary of a Pool block, span or Huge block some more is clear while it lives:
// a write that leaps over the canary is found there.
//
// Invariants:
//   CA1: a live block has room for its canary (kMinSlackBytes).
//   CA2: the first byte is odd: one zero too many, as at the end of a
//       string, changes it.
#ifndef HAKMEM_ALLOCATOR_CORE_BLOCK_CANARY_H_
#define HAKMEM_ALLOCATOR_CORE_BLOCK_CANARY_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {

struct CanarySecret {
  std::uint64_t mask = 0;
  std::uint64_t factor = 0;
};

// Where the canary of a block is, and what it is.
class BlockCanary {
 public:
  static constexpr std::size_t kBytes = sizeof(std::uint64_t);

  // The canary of the block at `block`, asked for with `size_bytes`.
  HAK_ALWAYS_INLINE BlockCanary(Address block, std::size_t size_bytes,
                                const CanarySecret& secret)
      : start_(block + size_bytes) {
    const Wide product = Wide{block ^ secret.mask} * secret.factor;
    value_ = (static_cast<std::uint64_t>(product) ^
              static_cast<std::uint64_t>(product >> 64)) |
             kFirstByteIsOdd;
  }

  HAK_ALWAYS_INLINE void Place() const { Store(value_); }
  // Before the size changes: its bytes are zero again.
  void Remove() const { Store(0); }

  HAK_ALWAYS_INLINE bool IsIntact() const { return Load() == value_; }
  // The address of the first damaged byte; 0: none.
  Address FirstDamage() const {
    const std::uint64_t wrong = Load() ^ value_;
    if (wrong == 0) return 0;
    const int bits =
        kLittleEndian ? std::countr_zero(wrong) : std::countl_zero(wrong);
    return start_ + static_cast<unsigned>(bits) / 8;
  }

 private:
  static_assert(kBytes == kMinSlackBytes);
  static constexpr bool kLittleEndian =
      std::endian::native == std::endian::little;
  static constexpr std::uint64_t kFirstByteIsOdd =
      kLittleEndian ? 1 : std::uint64_t{1} << 56;
  __extension__ using Wide = unsigned __int128;

  HAK_ALWAYS_INLINE std::uint64_t Load() const {
    std::uint64_t found;
    __builtin_memcpy(&found, reinterpret_cast<const void*>(start_),
                     sizeof found);
    return found;
  }
  HAK_ALWAYS_INLINE void Store(std::uint64_t value) const {
    __builtin_memcpy(reinterpret_cast<void*>(start_), &value, sizeof value);
  }

  Address start_;
  std::uint64_t value_;
};

// The bytes behind a block's canary that are clear while it lives.
class BlockSlack {
 public:
  // So much of a Pool block's, or what there is.
  static constexpr std::size_t kPoolBytes = 64;

  static HAK_ALWAYS_INLINE BlockSlack OfPool(Address block,
                                             std::size_t size_bytes,
                                             std::size_t block_bytes) {
    const std::size_t used_bytes = size_bytes + BlockCanary::kBytes;
    return {block + used_bytes, std::min(block_bytes - used_bytes, kPoolBytes)};
  }
  // Of a span or Huge block: to the end of the page that the canary ends in.
  static BlockSlack OfLarge(Address block, std::size_t size_bytes) {
    const Address begin = block + size_bytes + BlockCanary::kBytes;
    return {begin, RoundUp<Address>(begin, kSmallestPageBytes) - begin};
  }

  HAK_ALWAYS_INLINE void Clear() const {
    if (bytes_ == kPoolBytes) [[likely]] {
      __builtin_memset(Bytes(), 0, kPoolBytes);
    } else {
      ZeroBytes(Bytes(), bytes_);
    }
  }
  HAK_ALWAYS_INLINE bool IsClear() const {
    if (bytes_ == kPoolBytes) [[likely]]
      return IsZeroAll<kPoolBytes>(Bytes());
    return bytes_ >= kMinPartBytes ? IsZeroWhole(Bytes(), bytes_)
                                   : FirstNonZero(Bytes(), bytes_) == bytes_;
  }
  // The address of the first byte that was written; 0: none.
  Address FirstDamage() const {
    // One word after the other takes long.
    return IsClear() ? 0 : begin_ + FirstNonZero(Bytes(), bytes_);
  }

 private:
  static constexpr Address kSmallestPageBytes = 4 * kKiB;

  HAK_ALWAYS_INLINE BlockSlack(Address begin, std::size_t bytes)
      : begin_(begin), bytes_(bytes) {}
  HAK_ALWAYS_INLINE char* Bytes() const {
    return reinterpret_cast<char*>(begin_);
  }

  Address begin_;
  std::size_t bytes_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_BLOCK_CANARY_H_
