// Call stacks by number: each distinct one is kept once.
//
// Owns: the stacks. Called by: the debug variant's records of blocks.
// Thread-safety: any thread; looking a stack up takes no lock, keeping a new
// one takes the depot's own, under which no other is taken.
//
// A hash table whose chains only grow at the front (hash-consing; sanitizers'
// depots work alike). Nothing is ever removed, so a number stays valid and the
// stack behind it never changes.
//
// Invariants:
//   SD1: equal stacks have equal numbers; 0 is no stack.
//   SD2: the depot never takes more than it was given; what does not fit any
//       more has the number 0 and is counted.
#ifndef HAKMEM_ALLOCATOR_HISTORY_STACK_DEPOT_H_
#define HAKMEM_ALLOCATOR_HISTORY_STACK_DEPOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/base/thread_annotations.h"
#include "allocator/base/units.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/superslab/metadata_table.h"

namespace hakmem {

using StackId = std::uint32_t;

// Blocks of one stack that a walk has found; one walk at a time.
struct StackTally {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};

class StackDepot {
 public:
  explicit constexpr StackDepot(VirtualMemory& memory) : memory_(memory) {}
  StackDepot(const StackDepot&) = delete;
  StackDepot& operator=(const StackDepot&) = delete;

  // Once, before anything else: [window, window + bytes) is the depot's, to be
  // mapped as it fills. 0 bytes: it keeps nothing.
  void Start(Address window, std::size_t bytes);

  // The number of the stack. 0: it is empty, or there is no room for it.
  StackId Intern(std::span<const std::uintptr_t> frames);
  // Number 0 has none.
  std::span<const std::uintptr_t> Frames(StackId id) const;

  StackTally& TallyOf(StackId id) { return EntryAt(id).tally; }
  // The stacks one after the other; 0 begins and ends.
  StackId Next(StackId id) const;

  std::uint64_t stacks() const {
    return stacks_.load(std::memory_order_relaxed);
  }
  std::uint64_t dropped() const {
    return dropped_.load(std::memory_order_relaxed);
  }
  std::size_t mapped_bytes() const { return table_.mapped_bytes(); }

  // For a fork.
  FutexLock& lock() { return lock_; }

 private:
  static constexpr std::size_t kBuckets = std::size_t{1} << 14;
  static constexpr std::size_t kStepBytes = alignof(std::uint64_t);

  // Written once, before it is found; the tally by whoever walks.
  struct Entry {
    StackTally tally;
    StackId next;
    std::uint32_t hash;
    std::uint64_t count;
    // They follow it.
    std::uintptr_t* frames() {
      return reinterpret_cast<std::uintptr_t*>(this + 1);
    }
  };

  Entry& EntryAt(StackId id) const {
    return *reinterpret_cast<Entry*>(table_.start() + id * kStepBytes);
  }
  // Each is written under lock_, after its first stack.
  std::atomic<StackId>* buckets() const {
    return reinterpret_cast<std::atomic<StackId>*>(table_.start());
  }
  StackId Find(StackId first, std::uint32_t hash,
               std::span<const std::uintptr_t> frames) const;
  StackId Add(std::atomic<StackId>& bucket, std::uint32_t hash,
              std::span<const std::uintptr_t> frames)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  VirtualMemory& memory_;
  FutexLock lock_;
  MetadataTable table_;  // grown under lock_
  std::size_t limit_bytes_ = 0;
  // Written under lock_, read by walks.
  std::atomic<std::size_t> used_bytes_{0};
  std::atomic<std::uint64_t> stacks_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HISTORY_STACK_DEPOT_H_
