// The count of a class's allocations, which tells every so often that a call is
// to be sampled, or that it is time to look at the clock.
//
// Owns: a word. Called by: ThreadHeap, for each class. Thread-safety: the owner
// counts and winds; any thread may read the value. It is exact, but one too
// high between a call that found the countdown at its end and its Wind.
//
// The low 16 bits of the word count up to 0; the others hold what has to be
// added. So one instruction counts, and its flags tell the end. To begin with
// the countdown is as good as at its end: the first call winds it.
//
// Invariants:
//   AC1: the low 16 bits are at least 2^15, or the countdown is at its end.
#ifndef HAKMEM_ALLOCATOR_HEAP_ALLOCATION_COUNT_H_
#define HAKMEM_ALLOCATOR_HEAP_ALLOCATION_COUNT_H_

#include <atomic>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"

namespace hakmem {

class AllocationCount {
 public:
  // So many calls are counted between two looks at the clock, which take some
  // 20 ns: a call pays a twenty-fifth of one.
  static constexpr std::uint32_t kInterval = 512;

  // Counts a call that allocates. False: the countdown is at its end, and the
  // call is not to be served before it has been wound up.
  HAK_ALWAYS_INLINE bool Count() { return !IncrementLowHalfIsZero(word_); }
  bool at_end() const { return IsAtEnd(Load()); }
  // The next call finds the end.
  bool is_over() const { return IsAtEnd(turn() + 1); }
  // So many calls are counted before one finds the end.
  std::uint32_t left() const {
    const std::uint32_t word = turn();
    return IsAtEnd(word) ? 0 : static_cast<std::uint32_t>(~word & kLowMask);
  }
  // From here, `calls` calls are counted, at most kInterval. One that found the
  // end is not.
  void Wind(std::uint32_t calls = kInterval) {
    const std::uint64_t word = Load();
    const std::uint64_t value = ValueOf(word) - (IsAtEnd(word) ? 1 : 0);
    word_.store(Word(value, calls), std::memory_order_relaxed);
  }
  std::uint64_t value() const { return ValueOf(Load()); }
  // A number that changes with each call, at no cost.
  HAK_ALWAYS_INLINE std::uint32_t turn() const { return LoadLowHalf(word_); }

 private:
  static constexpr unsigned kLowBits = 16;
  static constexpr std::uint64_t kLowMask = (1U << kLowBits) - 1;

  static constexpr std::uint64_t Word(std::uint64_t value,
                                      std::uint32_t calls) {
    const std::uint64_t low = kLowMask - calls;
    return (value - low) << kLowBits | low;
  }
  static constexpr bool IsAtEnd(std::uint64_t word) {
    return (word & kLowMask) < (kLowMask + 1) / 2;
  }
  static constexpr std::uint64_t ValueOf(std::uint64_t word) {
    const std::uint64_t low =
        (word & kLowMask) + (IsAtEnd(word) ? kLowMask + 1 : 0);
    return ((word >> kLowBits) + low) & (~std::uint64_t{0} >> kLowBits);
  }
  std::uint64_t Load() const { return word_.load(std::memory_order_relaxed); }

  // Written by the owner, read by statistics.
  std::atomic<std::uint64_t> word_{Word(0, 0)};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_ALLOCATION_COUNT_H_
