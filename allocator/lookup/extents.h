// Which block an address is in, and how long it was asked to be: what a copy
// has to know before it writes.
//
// Owns: nothing; hints, where the last blocks were found, are the caller's.
// Called by: the frontend's checked copies, in variants that keep bounds.
// Thread-safety: any thread, signal handlers included: no lock is waited for,
// and nothing outside of the mapped tables is read. All that is read here of a
// block that the program owns while this runs stays as it is; other addresses
// may be told wrongly, but never as in such a block.
//
// A block of a slab is known not to be live, because its unit's record outlives
// it. Nothing is known of other memory: somebody else's may be mapped where
// hakmem has given its own back.
//
// Invariants:
//   X1: an address in a live block of a slab, a span or a Huge block finds that
//       block, with the size that it was asked for with.
#ifndef HAKMEM_ALLOCATOR_LOOKUP_EXTENTS_H_
#define HAKMEM_ALLOCATOR_LOOKUP_EXTENTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/lookup/lookup.h"

namespace hakmem {

struct BlockExtent {
  enum class State : std::uint8_t { kUnknown, kLive, kNotLive };

  State state = State::kUnknown;
  Address start = 0;
  std::size_t size_bytes = 0;  // what a live block was asked for with

  // False: a live block ends before these bytes of it do, or is none any more.
  HAK_ALWAYS_INLINE bool Allows(Address address, std::size_t bytes) const {
    const std::size_t at_bytes = address - start;
    return state == State::kLive
               ? at_bytes <= size_bytes && bytes <= size_bytes - at_bytes
               : state == State::kUnknown;
  }
};

// Starts of large blocks, each by one of the units in it, and by a part of the
// block that few others are in. Written by any thread that looks, read by all;
// what is read is looked up again.
struct ExtentHints {
  static constexpr std::size_t kCount = 64;
  static constexpr unsigned kFarBits = 8;
  std::atomic<Address> starts[kCount] = {};
  std::atomic<Address> far_starts[std::size_t{1} << kFarBits] = {};
};

class ExtentFinder {
 public:
  constexpr ExtentFinder(Ace& ace, ExtentHints& hints)
      : ace_(ace), hints_(hints) {}
  ExtentFinder(const ExtentFinder&) = delete;
  ExtentFinder& operator=(const ExtentFinder&) = delete;

  // `address` is in the region, which has its place.
  BlockExtent Find(Address address) const;
  // Whether the block there allows these bytes.
  HAK_NOINLINE bool Allows(Address address, std::size_t bytes) const;
  // The parts of it that most need, false where others may allow it, as for
  // sampled blocks: whether they are in one live Tiny block; in one of a Pool
  // slab, or in the span that was found last.
  HAK_ALWAYS_INLINE bool IsInTiny(Address address, std::size_t bytes) const {
    return IsInTiny(address, bytes, address - ace_.region().fine().view().base);
  }
  // The same, of an address so far behind the fine zone's begin.
  HAK_ALWAYS_INLINE bool IsInTiny(Address address, std::size_t bytes,
                                  Address at_bytes) const;
  HAK_ALWAYS_INLINE bool IsInPoolOrSpan(Address address,
                                        std::size_t bytes) const;

 private:
  template <bool kTiny>
  static HAK_ALWAYS_INLINE BlockExtent InSlab(const Zone& zone, Address address,
                                              UnitIndex unit,
                                              UnitRecord record);
  template <bool kTiny>
  static HAK_ALWAYS_INLINE bool IsInSlab(const Zone& zone, Address address,
                                         std::size_t bytes, UnitIndex unit,
                                         UnitRecord record);
  // False: it is not in the fine zone; in no slab of the coarse zone.
  HAK_ALWAYS_INLINE bool FindTiny(Address address, BlockExtent& extent) const;
  HAK_ALWAYS_INLINE bool FindPool(Address address, BlockExtent& extent) const;
  std::atomic<Address>& HintOf(Address address) const {
    return hints_.starts[(address >> kUnitShift) % ExtentHints::kCount];
  }
  std::atomic<Address>& FarHintOf(Address address) const {
    // 16 MiB, or what the shortest of Huge blocks is as long as: 256 MiB.
    const unsigned shift = ace_.region().coarse().Contains(address) ? 24 : 28;
    // Mixed, or blocks of one length would have places in common.
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
    return hints_.far_starts[(address >> shift) * kGoldenRatio >>
                             (64 - ExtentHints::kFarBits)];
  }
  HAK_ALWAYS_INLINE bool IsInHintedSpan(Address address,
                                        std::size_t bytes) const;
  HAK_NOINLINE BlockExtent FindLarge(Address address) const;
  HAK_NOINLINE bool LargeAllows(Address address, std::size_t bytes) const;
  // Live, if a live large block starts there, at an address that may be
  // anything, and holds the other.
  BlockExtent InLarge(Address start, Address address) const;

  Ace& ace_;
  ExtentHints& hints_;
};

// `record` is the unit's, and may be anything.
template <bool kTiny>
HAK_ALWAYS_INLINE BlockExtent ExtentFinder::InSlab(const Zone& zone,
                                                   Address address,
                                                   UnitIndex unit,
                                                   UnitRecord record) {
  using State = BlockExtent::State;
  using Entry = BoundsEntry<kTiny>;
  const SlabPlace place = SlabPlaceOf<kTiny>(zone, address, unit, record);
  if (place.size_class == kClassCount) [[unlikely]]
    return {};
  if (place.header != place.live && place.header != kSampledHeader)
      [[unlikely]] {
    const bool freed = HeaderCode(place.header) == HeaderCode(place.live);
    return {freed ? State::kNotLive : State::kUnknown, place.start, 0};
  }
  const auto* const block = reinterpret_cast<const void*>(place.start);
  return {State::kLive, place.start,
          Entry::SizeOf(Entry::Load(zone.view(), block))};
}

HAK_ALWAYS_INLINE bool ExtentFinder::FindTiny(Address address,
                                              BlockExtent& extent) const {
  const Zone& fine = ace_.region().fine();
  if (!fine.Contains(address)) return false;
  const UnitIndex unit = fine.UnitOf(address);
  extent = InSlab<true>(fine, address, unit,
                        fine.unit_record(unit).load(std::memory_order_relaxed));
  return true;
}

// Short, as half of what a program copies is shorter than this
// (docs/decisions/0020).
template <bool kTiny>
HAK_ALWAYS_INLINE bool ExtentFinder::IsInSlab(const Zone& zone, Address address,
                                              std::size_t bytes, UnitIndex unit,
                                              UnitRecord record) {
  using Entry = BoundsEntry<kTiny>;
  const SlabPlace place = SlabPlaceOf<kTiny>(zone, address, unit, record);
  if (place.size_class == kClassCount || place.header != place.live)
      [[unlikely]] {
    return false;
  }
  const std::size_t size_bytes = Entry::SizeOf(
      Entry::Load(zone.view(), reinterpret_cast<const void*>(place.start)));
  const std::size_t at_bytes = address - place.start;
  if (at_bytes > size_bytes) [[unlikely]]
    return false;
  return bytes <= size_bytes - at_bytes;
}

HAK_ALWAYS_INLINE bool ExtentFinder::IsInTiny(Address address,
                                              std::size_t bytes,
                                              Address at_bytes) const {
  const Zone& fine = ace_.region().fine();
  if (at_bytes >= fine.frame_count() * kSuperSlabBytes) [[unlikely]]
    return false;
  const auto unit = static_cast<UnitIndex>(at_bytes / kUnitBytes);
  return IsInSlab<true>(fine, address, bytes, unit,
                        fine.unit_record(unit).load(std::memory_order_relaxed));
}

// A span is longer than what was asked for, so this is all that needs to fit.
HAK_ALWAYS_INLINE bool ExtentFinder::IsInHintedSpan(Address address,
                                                    std::size_t bytes) const {
  const Address start = HintOf(address).load(std::memory_order_relaxed);
  const UnitDescriptor* span = nullptr;
  if (!FindSpanAt(ace_.region().coarse(), start, span)) return false;
  const BlockExtent extent = {BlockExtent::State::kLive, start,
                              span->use.requested_bytes};
  return extent.Allows(address, bytes);
}

HAK_ALWAYS_INLINE bool ExtentFinder::FindPool(Address address,
                                              BlockExtent& extent) const {
  const Zone& coarse = ace_.region().coarse();
  if (!coarse.Contains(address)) return false;
  const UnitIndex unit = coarse.UnitOf(address);
  const UnitRecord record =
      coarse.unit_record(unit).load(std::memory_order_relaxed);
  if (record == 0 || record == kSpanRecord) return false;
  extent = InSlab<false>(coarse, address, unit, record);
  return true;
}

HAK_ALWAYS_INLINE bool ExtentFinder::IsInPoolOrSpan(Address address,
                                                    std::size_t bytes) const {
  const Zone& coarse = ace_.region().coarse();
  if (!coarse.Contains(address)) [[unlikely]]
    return false;
  const UnitIndex unit = coarse.UnitOf(address);
  const UnitRecord record =
      coarse.unit_record(unit).load(std::memory_order_relaxed);
  if (record == kSpanRecord || record == 0) {
    return IsInHintedSpan(address, bytes);
  }
  return IsInSlab<false>(coarse, address, bytes, unit, record);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LOOKUP_EXTENTS_H_
