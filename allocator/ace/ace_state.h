// What ACE's parts share: its lock, the rules of retention, how much is mapped.
//
// Owns: these. Called by: Ace and its RunStores, under the lock, but for what
// says otherwise. Thread-safety: none of its own.
#ifndef HAKMEM_ALLOCATOR_ACE_ACE_STATE_H_
#define HAKMEM_ALLOCATOR_ACE_ACE_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/retention.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"

namespace hakmem {

struct AceState {
  VirtualMemory& memory;
  FutexLock lock = {};
  // Written by Ace::Start alone, as huge_pages.
  const Config* config = &kRelease;
  HugePages huge_pages = HugePages::kOff;
  Retention retention = {};
  // A partition but the first has had a range. Written under the lock, read by
  // all.
  Relaxed<bool> has_partitions = false;
  // Written under the lock, read by statistics without it.
  std::atomic<std::size_t> mapped_bytes{0};
  std::atomic<std::size_t> peak_mapped_bytes{0};

  std::size_t mapped() const {
    return mapped_bytes.load(std::memory_order_relaxed);
  }
  void AddMapped(std::size_t bytes) {
    mapped_bytes.store(mapped() + bytes, std::memory_order_relaxed);
    NotePeak();
  }
  void SubtractMapped(std::size_t bytes) {
    mapped_bytes.store(mapped() - bytes, std::memory_order_relaxed);
  }
  void NotePeak() {
    if (mapped() > peak_mapped_bytes.load(std::memory_order_relaxed)) {
      peak_mapped_bytes.store(mapped(), std::memory_order_relaxed);
    }
  }

  // How much goes back for the sake of one grant or release, or before others
  // are let in: 16 MiB, 1 to 2 ms.
  static constexpr std::uint64_t kPurgeSliceUnits = 16 * kMiB / kUnitBytes;

  // For who needs what another thread has let go of the lock for; not for ever,
  // as a thread that forks keeps others from taking the lock again.
  static constexpr int kMaxWaits = 10'000;
  void WaitForKernel() {
    const FutexLockPause pause(lock);
    SleepShortly();
  }
  // Not to keep others waiting; what is guarded is read again.
  void LetOthersIn() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock.UnlockForOthers();
    lock.Lock();
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ACE_STATE_H_
