// Spans that a thread freed of late, for its next requests of the same length.
//
// Owns: granted units that no record names. Called by: ThreadHeap.
// Thread-safety: the owner thread alone calls Take and Put; any thread gives
// back. A slot is one word: the owner fills an empty one, and whoever exchanges
// a full one for 0 has the span.
//
// A span is kept until it is taken, until a newer one needs its place, or until
// nobody has wanted it between two calls of Trim.
//
// Invariants:
//   SN1: a kept span's header is Free and its unit's record 0, as if it had
//        been released.
//   SN2: kept spans have at most `most_units` units together.
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
#include "allocator/superslab/zone.h"

namespace hakmem {

class SpanCache {
 public:
  // Longer spans cost more to fill than to grant.
  static constexpr std::uint32_t kMaxKeptUnits = 16;
  static constexpr std::uint64_t kMaxKeptBytes = 2 * kMiB;
  // What a heap may keep, in units, as a share of what HAKMEM_DEPOT allows it;
  // nothing where all memory is to go back at once.
  static constexpr std::uint32_t MostUnits(const HeapOptions& options) {
    if (options.decay_ms == 0) return 0;
    return static_cast<std::uint32_t>(
        std::min(options.depot_bytes / 4, kMaxKeptBytes) / kUnitBytes);
  }

  constexpr SpanCache() = default;
  SpanCache(const SpanCache&) = delete;
  SpanCache& operator=(const SpanCache&) = delete;

  // The first unit of a span of that length; kNoUnit: there is none.
  HAK_ALWAYS_INLINE UnitIndex Take(std::uint32_t units) {
    for (std::atomic<std::uint64_t>& slot : slots_) {
      std::uint64_t word = slot.load(std::memory_order_relaxed);
      if (UnitsOf(word) != units) continue;
      // relaxed: what the span holds was written by this thread.
      if (slot.compare_exchange_strong(word, 0, std::memory_order_relaxed)) {
        held_units_ -= units;
        return FirstOf(word);
      }
    }
    return kNoUnit;
  }

  // Takes a span whose memory is nobody's, or releases it.
  void Put(Ace& ace, std::uint32_t most_units, UnitIndex first,
           std::uint32_t units) {
    if (units > kMaxKeptUnits || units > most_units) {
      ace.ReleaseSpan(first, units);
      return;
    }
    std::atomic<std::uint64_t>* empty = &slots_[0];
    // The slot that a single span comes from and goes to.
    if (empty->load(std::memory_order_relaxed) != 0 ||
        held_units_ + units > most_units) {
      empty = MakeRoom(ace, most_units - units);
    }
    held_units_ += units;
    // release: pairs with the acquire in Release.
    empty->store(std::uint64_t{first} << 32 | units, std::memory_order_release);
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
      } else if (word != 0) {
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

  void CheckInvariants(const Zone& zone, std::uint32_t most_units) const {
    HAK_CHECK_LE(units(), most_units);  // SN2
    for (const std::atomic<std::uint64_t>& slot : slots_) {
      const std::uint64_t word = slot.load(std::memory_order_relaxed);
      if (word == 0) continue;
      HAK_CHECK_EQ(
          zone.unit_record(FirstOf(word)).load(std::memory_order_relaxed),
          0U);  // SN1
    }
  }

 private:
  static constexpr unsigned kSlots = 8;
  // A word: first unit, 32 bits; whether Trim has seen it; units. 0: no span.
  static constexpr std::uint64_t kSeenBit = std::uint64_t{1} << 31;
  static constexpr std::uint32_t UnitsOf(std::uint64_t word) {
    return static_cast<std::uint32_t>(word & (kSeenBit - 1));
  }
  static constexpr UnitIndex FirstOf(std::uint64_t word) {
    return static_cast<UnitIndex>(word >> 32);
  }

  static void Release(Ace& ace, std::atomic<std::uint64_t>& slot) {
    if (slot.load(std::memory_order_relaxed) == 0) return;
    // acquire: pairs with the release in Put: ACE's next user of the span comes
    // after all that its thread has done there.
    const std::uint64_t word = slot.exchange(0, std::memory_order_acquire);
    if (word != 0) ace.ReleaseSpan(FirstOf(word), UnitsOf(word));
  }

  // An empty slot, with at most `most_units` in the others.
  HAK_NOINLINE std::atomic<std::uint64_t>* MakeRoom(Ace& ace,
                                                    std::uint32_t most_units) {
    for (;;) {
      std::atomic<std::uint64_t>* empty = nullptr;
      for (std::atomic<std::uint64_t>& slot : slots_) {
        if (slot.load(std::memory_order_relaxed) == 0) empty = &slot;
      }
      held_units_ = units();
      if (empty != nullptr && held_units_ <= most_units) return empty;
      Release(ace, slots_[next_released_++ % kSlots]);
    }
  }

  // Filled by the owner, emptied by any thread.
  std::atomic<std::uint64_t> slots_[kSlots] = {};
  // The owner's. At least what is kept: what others gave back counts until
  // there is no room.
  std::uint32_t held_units_ = 0;
  unsigned next_released_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SPAN_CACHE_H_
