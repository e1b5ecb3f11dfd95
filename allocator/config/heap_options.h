// The options that the heap itself reads, and the words that options are made
// of.
//
// Owns: nothing. Called by: ace, heap, core; Options (options.h) is made of it.
// Thread-safety: written once while the allocator initialises, then read-only.
#ifndef HAKMEM_ALLOCATOR_CONFIG_HEAP_OPTIONS_H_
#define HAKMEM_ALLOCATOR_CONFIG_HEAP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "allocator/config/partitions.h"

namespace hakmem {

inline constexpr std::size_t kMaxOptionPathBytes = 256;

// HAKMEM_HUGE_PAGES, HAKMEM_UNWIND and HAKMEM_ON_MISUSE: the numbers of their
// words.
enum class HugePages : std::uint8_t { kOff, kAuto, kOn };
enum class Unwinding : std::uint8_t { kTables, kFrames, kNone };
enum class OnMisuse : std::uint8_t { kAbort, kTrap, kLog };

// HAKMEM_CLEAR=all.
inline constexpr std::uint64_t kClearAll =
    std::numeric_limits<std::uint64_t>::max();

struct HeapOptions {
  // How long freed memory is kept before it goes back to the kernel.
  std::uint64_t decay_ms = 500;
  // The largest request that is served.
  std::uint64_t max_alloc_bytes = std::numeric_limits<std::uint64_t>::max();
  // The most memory for blocks and what is kept of freed ones.
  std::uint64_t heap_limit_bytes = std::numeric_limits<std::uint64_t>::max();
  // The most that one thread's magazines may hold beyond the loaded and the
  // previous one of each class.
  std::uint64_t depot_bytes = 8 * 1024 * 1024;
  // A HugePages.
  std::uint64_t huge_pages = 1;
  // 0 or 1: slabs get pages when they are granted.
  std::uint64_t prefault = 0;
  // An Unwinding.
  std::uint64_t unwind = 0;
  // One allocation in so many is guarded; 0: none.
  std::uint64_t guard_sample = 0;
  // The most guarded blocks at once, freed ones that still rest included. Not
  // in the environment.
  std::uint64_t guard_slots = 256;
  // The heap profile samples one byte in so many; 0: none.
  std::uint64_t profile_bytes = 512 * 1024;
  // How many partitions tokens that are hashes have (partitions.h); 1: types
  // are not kept apart. Variants that separate types.
  std::uint64_t partitions = 3;
  // 0 or 1. Variants that keep kinds.
  std::uint64_t check_kinds = 1;
  // Says how much memory the process's control groups may have, and is asked as
  // the heap grows. Null: there is no limit. Not in the environment.
  std::uint64_t (*find_memory_limit)() = nullptr;
  // Whatever operators the process's libraries have. Not in the environment,
  // which says so by setting the other.
  bool kinds_asked_for = false;
  // So much of each block's beginning is cleared when it is freed, and looked
  // at when it is used again. Variants that clear.
  std::uint64_t clear_bytes = kClearAll;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_HEAP_OPTIONS_H_
