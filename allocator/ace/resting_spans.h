// Freed spans that rest before they can be used again.
//
// Owns: which spans rest (their units are kept: unit_pool.h). Called by: Ace,
// under its lock, in variants that delay reuse.
// Thread-safety: none of its own.
//
// Which one has rested, when there is no room for another, is chance; it goes
// back to the ranges of its length. Spans that are longer than the bound do not
// rest: it is a share of what is granted, as the addresses of one that rests
// serve nobody.
//
// Invariants:
//   RS1: the units of each span that rests are kept, and on no list of
//       RangePool.
//   RS2: units_ is what all of them have.
#ifndef HAKMEM_ALLOCATOR_ACE_RESTING_SPANS_H_
#define HAKMEM_ALLOCATOR_ACE_RESTING_SPANS_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "allocator/ace/range_pool.h"
#include "allocator/base/check.h"
#include "allocator/base/weak_random.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class RestingSpans {
 public:
  static constexpr std::uint32_t kMaxSpans = 16;

  // `ranges` are those of the zone that has the spans.
  explicit constexpr RestingSpans(RangePool& ranges) : ranges_(ranges) {}
  RestingSpans(const RestingSpans&) = delete;
  RestingSpans& operator=(const RestingSpans&) = delete;

  void Start(std::uint64_t seed) { random_ = WeakRandom(seed); }

  // A freed span begins to rest, where so many units are granted.
  void Rest(UnitIndex first, std::uint32_t units, std::uint64_t granted_units) {
    const std::uint64_t max_units =
        std::min(kMaxUnits, granted_units / kGrantedShare);
    if (units > max_units) {
      ranges_.Put({.units = units}, first);
      return;
    }
    while (count_ == kMaxSpans || units_ + units > max_units) {
      Wake(random_.Below(count_));
    }
    spans_[count_++] = {first, units};
    units_ += units;
  }
  // All have rested.
  void WakeAll() {
    while (count_ != 0) Wake(count_ - 1);
  }

  void CheckInvariants() const {
    std::uint32_t units = 0;
    for (const Span& span : std::span(spans_, count_)) {
      units += span.units;
      ranges_.CheckRange(span.first, span.units);  // RS1
      HAK_CHECK(!ranges_.IsListed(span.first, span.units));
    }
    HAK_CHECK_EQ(units, units_);  // RS2
  }

 private:
  // All that rest have at most this share of what is granted, and so many.
  static constexpr std::uint64_t kGrantedShare = 16;
  static constexpr std::uint64_t kMaxUnits = 4 * kMiB / kUnitBytes;
  struct Span {
    UnitIndex first = 0;
    std::uint32_t units = 0;
  };

  void Wake(std::uint32_t index) {
    const Span span = spans_[index];
    spans_[index] = spans_[--count_];
    units_ -= span.units;
    ranges_.Put({.units = span.units}, span.first);
  }

  RangePool& ranges_;
  Span spans_[kMaxSpans];
  std::uint32_t count_ = 0;
  std::uint32_t units_ = 0;
  WeakRandom random_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_RESTING_SPANS_H_
