// Going back over the zeros of a table of atomics.
//
// Owns: nothing. Called by: lookup, ace. Thread-safety: any thread; each entry
// is read as a relaxed load reads it.
#ifndef HAKMEM_ALLOCATOR_BASE_SKIP_ZEROS_H_
#define HAKMEM_ALLOCATOR_BASE_SKIP_ZEROS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hakmem {

namespace internal {

using SeveralEntries __attribute__((may_alias)) = std::uint64_t;

}  // namespace internal

// The last entry at or before `at` that is not zero; `first`, which is not
// behind `at`, if all before it are. Most are zero, so they are read eight
// bytes at a time. The table is aligned to as many.
template <typename T>
std::size_t SkipZerosBack(const std::atomic<T>* table, std::size_t at,
                          std::size_t first) {
  static_assert(sizeof(std::atomic<T>) == sizeof(T));
  constexpr std::size_t kAtOnce = sizeof(std::uint64_t) / sizeof(T);
  const auto are_zero = [table](std::size_t begin) {
    return __atomic_load_n(
               reinterpret_cast<const internal::SeveralEntries*>(table + begin),
               __ATOMIC_RELAXED) == 0;
  };
  while (at != first && table[at].load(std::memory_order_relaxed) == 0) {
    --at;
    while ((at + 1) % kAtOnce == 0 && at + 1 - first > kAtOnce &&
           are_zero(at + 1 - kAtOnce)) {
      at -= kAtOnce;
    }
  }
  return at;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_SKIP_ZEROS_H_
