// Relaxed loads that cost what plain loads cost.
//
// Owns: nothing. Called by: hot paths. Thread-safety: as the atomics read.
//
// Compilers do not merge a load of std::atomic with the widening or the
// comparison that uses it, which is an instruction more on paths of twenty.
// Each of these reads its object exactly once.
#ifndef HAKMEM_ALLOCATOR_BASE_RELAXED_H_
#define HAKMEM_ALLOCATOR_BASE_RELAXED_H_

#include <atomic>
#include <bit>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/sanitizer.h"

namespace hakmem {

// Where a word is also read and written by its half.
using LowHalf __attribute__((may_alias)) = std::uint16_t;
static_assert(std::endian::native == std::endian::little);

// A relaxed load. T is at most a machine word, so that the hardware reads it
// whole.
template <typename T>
HAK_ALWAYS_INLINE T LoadForComparison(const std::atomic<T>& object) {
  static_assert(sizeof(T) <= sizeof(void*) &&
                sizeof(std::atomic<T>) == sizeof(T));
  if constexpr (kThreadSanitizer) {
    return object.load(std::memory_order_relaxed);
  } else {
    return *reinterpret_cast<const volatile T*>(&object);
  }
}

// What this thread writes before is written before what it writes after, as far
// as the compiler goes: for a reader that looks again much later.
HAK_ALWAYS_INLINE void KeepOrder() {
  // seq_cst pairs with nothing: no instruction comes of it.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// The low 16 bits of a word, which its owner reads.
HAK_ALWAYS_INLINE std::uint16_t LoadLowHalf(
    const std::atomic<std::uint64_t>& word) {
  if constexpr (kThreadSanitizer) {
    return static_cast<std::uint16_t>(word.load(std::memory_order_relaxed));
  } else {
    return *reinterpret_cast<const volatile LowHalf*>(&word);
  }
}

// Adds 1 to the low 16 bits alone, by the word's owner. Others may read the
// word. True: those bits are 0 now. Compilers do not use the flags that
// counting in memory leaves behind.
HAK_ALWAYS_INLINE bool IncrementLowHalfIsZero(
    std::atomic<std::uint64_t>& word) {
#if defined(__x86_64__)
  if constexpr (!kThreadSanitizer) {
    bool zero;
    __asm__("incw %0"
            : "+m"(*reinterpret_cast<LowHalf*>(&word)), "=@ccz"(zero));
    return zero;
  }
#endif
  const std::uint64_t before = word.load(std::memory_order_relaxed);
  const auto low = static_cast<std::uint16_t>(before + 1);
  word.store((before & ~std::uint64_t{0xffff}) | low,
             std::memory_order_relaxed);
  return low == 0;
}

// Adds to a count that others may read, by its only writer at the time.
HAK_ALWAYS_INLINE void AddByOwner(std::atomic<std::uint64_t>& sum,
                                  std::uint64_t more) {
  sum.store(sum.load(std::memory_order_relaxed) + more,
            std::memory_order_relaxed);
}

// A value that others may read while its owner writes it: whole, of no certain
// time, and ordering nothing.
template <typename T>
class Relaxed {
 public:
  constexpr Relaxed() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it is written like a T.
  constexpr Relaxed(T value) : value_(value) {}
  constexpr Relaxed(const Relaxed& other) : value_(T{other}) {}
  Relaxed& operator=(const Relaxed& other) { return *this = T{other}; }
  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): and read like one.
  operator T() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_RELAXED_H_
