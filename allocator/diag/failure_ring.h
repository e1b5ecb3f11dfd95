// The last allocation failures, with their reasons; kept in every variant.
//
// Owns: a ring of events. Called by: ace and core (Record), frontend (read).
// Thread-safety: any thread; Record is lock-free and never allocates. A reader
// gets each event whole or not at all (each slot is a sequence lock).
//
// Invariants:
//   R1: a slot's sequence is odd while it is being written.
//   R2: `recorded()` counts every Record since start.
#ifndef HAKMEM_ALLOCATOR_DIAG_FAILURE_RING_H_
#define HAKMEM_ALLOCATOR_DIAG_FAILURE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/diag/failure_event.h"

namespace hakmem {

class FailureRing {
 public:
  static constexpr std::size_t kCapacity = 256;

  constexpr FailureRing() = default;
  FailureRing(const FailureRing&) = delete;
  FailureRing& operator=(const FailureRing&) = delete;

  void Record(const FailureEvent& event);

  // How many events there have been since start.
  std::uint64_t recorded() const;

  // Copies the newest events, newest first, at most `capacity`; returns how
  // many. Events overwritten while being read are left out, and so are those
  // whose slot was busy: 256 events had come while one was being written.
  std::size_t Copy(FailureEvent* events, std::size_t capacity) const;

  // In the child of a fork: frees the slots that other threads were writing.
  void ChildAfterFork();

  // Every slot's sequence is even and none is beyond recorded(). Only while
  // nothing records.
  void CheckInvariants() const;

 private:
  static constexpr std::size_t kWords = (sizeof(FailureEvent) + 7) / 8;
  struct Slot {
    // Written by the recording thread: 2 * ticket + 1 while writing, then
    // 2 * ticket + 2; read by Copy.
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> words[kWords] = {};
  };

  // Written by recording threads, read by all.
  std::atomic<std::uint64_t> next_{0};
  Slot slots_[kCapacity] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_DIAG_FAILURE_RING_H_
