// The steps of addresses that were met of late.
//
// Owns: them. Called by: cached_unwinder.cc. Thread-safety: any thread; an
// entry that two write at once does not fit together, and is none (the lockless
// tables of chess programs; R. Hyatt, "A lock-less transposition table
// implementation").
//
// An address has one place in the first page, and one elsewhere that is touched
// only where another address has the former. So few samples touch one page.
#ifndef HAKMEM_ALLOCATOR_STACKS_STEP_CACHE_H_
#define HAKMEM_ALLOCATOR_STACKS_STEP_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace hakmem {

class StepCache {
 public:
  // 0: there is none.
  std::uint64_t Find(std::uintptr_t address) const {
    for (const unsigned bits : {kPageBits, kIndexBits}) {
      const Entry& entry = entries_[IndexOf(address, bits)];
      const std::uint64_t word = entry.word.load(std::memory_order_relaxed);
      const std::uint64_t check = entry.check.load(std::memory_order_relaxed);
      if ((word ^ check) == address) return word;
      if (word == 0) break;
    }
    return 0;
  }
  void Keep(std::uintptr_t address, std::uint64_t word) {
    Entry& first = entries_[IndexOf(address, kPageBits)];
    Entry& entry = first.word.load(std::memory_order_relaxed) == 0
                       ? first
                       : entries_[IndexOf(address, kIndexBits)];
    entry.word.store(word, std::memory_order_relaxed);
    entry.check.store(word ^ address, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kPageBits = 8;
  static constexpr unsigned kIndexBits = 12;
  // Written and read by every thread that walks its stack.
  struct Entry {
    std::atomic<std::uint64_t> word;
    std::atomic<std::uint64_t> check;
  };
  static std::size_t IndexOf(std::uintptr_t address, unsigned bits) {
    return address * 0x9e3779b97f4a7c15 >> (64 - bits);
  }
  alignas(4096) Entry entries_[std::size_t{1} << kIndexBits] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_STEP_CACHE_H_
