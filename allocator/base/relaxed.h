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

#include "allocator/base/compiler.h"
#include "allocator/base/sanitizer.h"

namespace hakmem {

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
