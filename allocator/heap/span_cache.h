// Spans that a thread freed of late, for its next requests of the same length.
//
// Owns: granted units that no record names. Called by: ThreadHeap.
// Thread-safety: the owner thread alone calls Take and Put; any thread gives
// back. A slot is one word: the owner fills an empty one, and whoever exchanges
// a full one for 0 has the span.
//
// A thread keeps no more than it has asked ACE for: one that only frees what
// others allocate would keep what it never takes.
//
// A span is kept until it is taken, until a newer one needs its place, or until
// nobody has wanted it between two calls of Trim.
//
// Invariants:
//   SN1: a kept span's header is Free and its unit's record 0, as if it had
//        been released.
//   SN2: kept spans have at most MostUnits units together.
#ifndef HAKMEM_ALLOCATOR_HEAP_SPAN_CACHE_H_
#define HAKMEM_ALLOCATOR_HEAP_SPAN_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class SpanCache {
 public:
  // Longer spans cost more to fill than to grant.
  static constexpr std::uint32_t kMaxCachedUnits = 16;
  static constexpr std::uint64_t kMaxCachedBytes = 2 * kMiB;
  // What a heap may keep, in units, as a share of what HAKMEM_DEPOT allows it;
  // nothing where all memory is to go back at once.
  static constexpr std::uint32_t MostUnits(const HeapOptions& options) {
    if (options.decay_ms == 0) return 0;
    return static_cast<std::uint32_t>(
        std::min(options.depot_bytes / 4, kMaxCachedBytes) / kUnitBytes);
  }

  constexpr SpanCache() = default;
  SpanCache(const SpanCache&) = delete;
  SpanCache& operator=(const SpanCache&) = delete;

  // The first unit of a span of that length, at most kMaxCachedUnits, from the
  // place where most are; kNoUnit: there is none, Take may know more.
  HAK_ALWAYS_INLINE UnitIndex TakeFirst(std::uint32_t units) {
    return TakeFrom(slots_[units], units);
  }
  // The same from any place, for any length. kNoUnit: the owner asks ACE.
  UnitIndex Take(std::uint32_t units) {
    UnitIndex first = units > kMaxCachedUnits ? kNoUnit : TakeFirst(units);
    for (unsigned i = kFirstOther; first == kNoUnit && i < kSlots; ++i) {
      if (UnitsOf(slots_[i].load(std::memory_order_relaxed)) == units) {
        first = TakeFrom(slots_[i], units);
      }
    }
    if (first == kNoUnit) {
      wanted_units_ = std::min(wanted_units_ + std::min(units, kMaxCachedUnits),
                               kMostWanted);
    }
    return first;
  }

  // Takes a span whose memory is nobody's into the place where most are. False:
  // ask Put, and tell those who look for memory that there is some here.
  HAK_ALWAYS_INLINE bool TryPut(UnitIndex first, std::uint32_t units) {
    if (units > kMaxCachedUnits) [[unlikely]]
      return false;
    std::atomic<std::uint64_t>& slot = slots_[units];
    if (slot.load(std::memory_order_relaxed) != kAnnouncedBit ||
        room_units_ < units) [[unlikely]] {
      return false;
    }
    // Who looks for memory may have been here since that load. Then this span
    // is passed over until the owner's next slow path tells of the heap, or two
    // trims, which pass no heap over, release it. To find that out would cost
    // each free of a span a locked instruction.
    PutInto(slot, first, units);
    return true;
  }
  // Takes it in any place, or releases it.
  void Put(Ace& ace, std::uint32_t most_units, UnitIndex first,
           std::uint32_t units) {
    most_units = std::min(most_units, wanted_units_);
    if (units > kMaxCachedUnits || units > most_units) {
      ace.ReleaseSpan(first, units);
      return;
    }
    std::atomic<std::uint64_t>& slot = EmptySlot(ace, units);
    if (room_units_ < units) ReleaseUntilFits(ace, most_units, units);
    PutInto(slot, first, units);
  }

  // Releases all of them.
  void ReleaseAll(Ace& ace) {
    for (std::atomic<std::uint64_t>& slot : slots_) Release(ace, slot);
  }
  // Releases those that are here since the last Trim.
  void Trim(Ace& ace) {
    for (std::atomic<std::uint64_t>& slot : slots_) {
      std::uint64_t word = slot.load(std::memory_order_relaxed);
      if ((word & kSeenBit) != 0) {
        Release(ace, slot);
      } else if (UnitsOf(word) != 0) {
        slot.compare_exchange_strong(word, word | kSeenBit,
                                     std::memory_order_relaxed);
      }
    }
  }

  std::uint32_t units() const {
    std::uint32_t units = 0;
    for (const std::atomic<std::uint64_t>& slot : slots_) {
      units += UnitsOf(slot.load(std::memory_order_relaxed));
    }
    return units;
  }

  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    visit.Spans(&slots_[0], kSlots);
  }

  // The owner, or anybody where there is none; others may release meanwhile.
  HAK_COLD void CheckInvariants(const Zone& zone,
                                std::uint32_t most_units) const {
    HAK_CHECK_LE(units(), most_units);  // SN2
    for (const std::atomic<std::uint64_t>& slot : slots_) {
      const std::uint64_t word = slot.load(std::memory_order_relaxed);
      if (UnitsOf(word) == 0) continue;
      // acquire: the slot is read again after it; pairs with ACE's lock, under
      // which the memory went to another owner once the slot was empty.
      const UnitRecord record =
          zone.unit_record(FirstOf(word)).load(std::memory_order_acquire);
      // What another thread has released meanwhile may be in use.
      const std::uint64_t now = slot.load(std::memory_order_relaxed);
      if ((now | kSeenBit) != (word | kSeenBit)) continue;
      HAK_CHECK_EQ(record, 0U);  // SN1
    }
  }

 private:
  static constexpr std::uint32_t kMostWanted = kMaxCachedBytes / kUnitBytes;
  // The last one of each length has a place of its own; others share some.
  static constexpr unsigned kFirstOther = kMaxCachedUnits + 1;
  static constexpr unsigned kOthers = 8;
  static constexpr unsigned kSlots = kFirstOther + kOthers;
  // A word: first unit, 32 bits; whether Trim has seen it; units. Without a
  // span: kAnnouncedBit if nobody else has released one here since Put; else
  // 0.
  static constexpr std::uint64_t kSeenBit = std::uint64_t{1} << 31;
  static constexpr std::uint64_t kAnnouncedBit = std::uint64_t{1} << 30;
  static constexpr std::uint32_t UnitsOf(std::uint64_t word) {
    return static_cast<std::uint16_t>(word);
  }
  static constexpr UnitIndex FirstOf(std::uint64_t word) {
    return static_cast<UnitIndex>(word >> 32);
  }

  HAK_ALWAYS_INLINE UnitIndex TakeFrom(std::atomic<std::uint64_t>& slot,
                                       std::uint32_t units) {
    std::uint64_t word = slot.load(std::memory_order_relaxed);
    // relaxed: what the span holds was written by this thread.
    if (UnitsOf(word) == 0 ||
        !slot.compare_exchange_strong(word, kAnnouncedBit,
                                      std::memory_order_relaxed)) [[unlikely]] {
      return kNoUnit;
    }
    room_units_ += units;
    const UnitIndex first = FirstOf(word);
    if (first == kNoUnit) __builtin_unreachable();  // spares callers a test
    return first;
  }
  HAK_ALWAYS_INLINE void PutInto(std::atomic<std::uint64_t>& slot,
                                 UnitIndex first, std::uint32_t units) {
    room_units_ -= units;
    // release: pairs with the acquire in Release.
    slot.store(std::uint64_t{first} << 32 | units, std::memory_order_release);
  }

  // Returns the units of what it released.
  static std::uint32_t Release(Ace& ace, std::atomic<std::uint64_t>& slot) {
    if (slot.load(std::memory_order_relaxed) == 0) return 0;
    // acquire: pairs with the release in PutInto: ACE's next user of the span
    // comes after all that its thread has done there.
    const std::uint64_t word = slot.exchange(0, std::memory_order_acquire);
    if (UnitsOf(word) != 0) ace.ReleaseSpan(FirstOf(word), UnitsOf(word));
    return UnitsOf(word);
  }

  // A place for a span of that length.
  std::atomic<std::uint64_t>& EmptySlot(Ace& ace, std::uint32_t units) {
    const auto is_empty = [](const std::atomic<std::uint64_t>& slot) {
      return UnitsOf(slot.load(std::memory_order_relaxed)) == 0;
    };
    if (is_empty(slots_[units])) return slots_[units];
    for (unsigned i = kFirstOther; i < kSlots; ++i) {
      if (is_empty(slots_[i])) return slots_[i];
    }
    std::atomic<std::uint64_t>& slot =
        slots_[kFirstOther + next_released_++ % kOthers];
    room_units_ += Release(ace, slot);
    return slot;
  }
  // Counts again after each step: others release meanwhile, and tell nobody.
  void ReleaseUntilFits(Ace& ace, std::uint32_t most_units,
                        std::uint32_t units) {
    for (;;) {
      const std::uint32_t kept = this->units();
      room_units_ = most_units - std::min(most_units, kept);
      if (room_units_ >= units) return;
      Release(ace, slots_[next_released_++ % kSlots]);
    }
  }

  // The owner's. At most what may be kept besides: what others gave back counts
  // until there is no room.
  std::uint32_t room_units_ = 0;
  unsigned next_released_ = 0;
  std::uint32_t wanted_units_ = 0;  // what the owner asked ACE for
  // Filled by the owner, emptied by any thread. The first of them by length.
  std::atomic<std::uint64_t> slots_[kSlots] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SPAN_CACHE_H_
