// Content for tests: tells blocks, and the pages of a block, apart.
//
// Owns: nothing. Called by: tests of ace. Thread-safety: none of its own.
#ifndef HAKMEM_ALLOCATOR_ACE_TEST_CONTENT_H_
#define HAKMEM_ALLOCATOR_ACE_TEST_CONTENT_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/superslab/block_header.h"

namespace hakmem {

// One word in every so many bytes: no more than a page of any system.
inline constexpr std::size_t kContentStrideBytes = 4096;

inline std::uint64_t& WordAt(Address address) {
  return *reinterpret_cast<std::uint64_t*>(address);
}

// `bytes` is a multiple of the stride.
inline void FillContent(Address address, std::size_t bytes,
                        std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes; at += kContentStrideBytes) {
    WordAt(address + at) = seed * 1'000'003 + at + 1;
    WordAt(address + at + kContentStrideBytes - 8) = seed;
  }
}

// Whether the first `bytes` of what FillContent wrote are still there.
inline bool HasContent(Address address, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes; at += kContentStrideBytes) {
    if (WordAt(address + at) != seed * 1'000'003 + at + 1) return false;
    if (WordAt(address + at + kContentStrideBytes - 8) != seed) return false;
  }
  return true;
}

// Whether nothing that FillContent may have written there is left.
inline bool IsBlank(Address address, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kContentStrideBytes) {
    if (WordAt(address + at) != 0) return false;
    if (WordAt(address + at + kContentStrideBytes - 8) != 0) return false;
  }
  return true;
}

// Claims a live Huge block of `ace`, an Ace, as core does.
template <typename Ace>
bool ClaimLive(Ace& ace, Address address) {
  HeaderByte live = kLiveLarge;
  return ace.huge().IsLive(address) &&
         ace.huge().HeaderOf(address)->compare_exchange_strong(live,
                                                               kClaimedLarge);
}
// It is freed; false: there is none.
template <typename Ace>
bool ReleaseLive(Ace& ace, Address address) {
  const bool claimed = ClaimLive(ace, address);
  if (claimed) ace.ReleaseHuge(address);
  return claimed;
}
// It changes its length.
template <typename Ace>
auto ResizeLive(Ace& ace, Address address, std::size_t bytes) {
  if (!ClaimLive(ace, address)) return decltype(ace.ResizeHuge(0, 0))();
  const auto grant = ace.ResizeHuge(address, bytes);
  ace.huge()
      .HeaderOf(grant.address == 0 ? address : grant.address)
      ->store(kLiveLarge);
  return grant;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_TEST_CONTENT_H_
