// How much memory the heap may have, and how much of it may be kept: the heap
// limit, or what the process's control groups may have, if that is less. The
// kernel kills who takes more of the latter, and gives no sign before.
//
// Owns: the groups' limit as it was when the heap had grown. Called by: Ace,
// under its lock. Thread-safety: bytes() and MostOfThread() by any thread.
#ifndef HAKMEM_ALLOCATOR_ACE_MEMORY_LIMIT_H_
#define HAKMEM_ALLOCATOR_ACE_MEMORY_LIMIT_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"
#include "allocator/process/futex_lock.h"

namespace hakmem {

class MemoryLimit {
 public:
  // `find` returns the groups' limit; 0: it cannot tell now. Null: there is
  // none.
  void Start(std::uint64_t heap_limit_bytes, std::uint64_t (*find)()) {
    heap_limit_bytes_ = heap_limit_bytes;
    bytes_ = heap_limit_bytes;
    find_ = find;
  }

  // It is looked for when a heap has 8 MiB, which small programs never have,
  // and when what is granted has doubled: it may be another by then.
  bool IsDue(std::uint64_t granted_units) const {
    return granted_units >= next_look_units_;
  }
  // Lets go of the lock meanwhile.
  HAK_COLD void Look(FutexLock& lock, std::uint64_t granted_units) {
    next_look_units_ = 2 * granted_units;
    if (find_ == nullptr) return;
    const FutexLockPause pause(lock);
    const std::uint64_t found_bytes = find_();
    if (found_bytes != 0) bytes_ = std::min(found_bytes, heap_limit_bytes_);
  }

  std::uint64_t heap_limit_bytes() const { return heap_limit_bytes_; }
  std::uint64_t bytes() const { return bytes_; }
  // How much dirty memory may be held beyond what is wanted: 1/64, and more
  // while the heap has less than 1/8.
  std::uint64_t MostSlackUnits(std::uint64_t granted_units) const {
    const std::uint64_t units = bytes() / kUnitBytes;
    const std::uint64_t little = units / 8;
    return std::max(units / 64, little - std::min(little, granted_units));
  }
  // How much a thread may keep beyond what each of its classes has.
  std::uint64_t MostOfThread() const { return bytes() / 128; }
  // Little may be in use of each, and one shall be no more than 1/256.
  bool HasRoomForHugePages() const { return bytes() / 256 >= kSuperSlabBytes; }

 private:
  std::uint64_t (*find_)() = nullptr;
  std::uint64_t heap_limit_bytes_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t next_look_units_ = 8 * kMiB / kUnitBytes;
  Relaxed<std::uint64_t> bytes_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_MEMORY_LIMIT_H_
