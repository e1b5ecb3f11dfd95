// The last allocation failures, with their reasons; kept in every variant.
//
// Owns: a ring of events. Called by: core (Record, Complete), frontend (read);
// read by debuggers, too, without a line of our code (docs/process_tables.md).
// Thread-safety: any thread; Record is lock-free and never allocates. A reader
// gets each event whole or not at all (each slot is a sequence lock).
//
// A slot's sequence says what it holds. Tickets count from 0. The event with
// ticket t has 4t + 1 while it is written, then 4t + 2. While it is written for
// the second time it has 4t + 3, and for good 4t + 4.
//
// Invariants:
//   R1: a slot's sequence is odd while it is being written.
//   R2: `recorded()` counts every Record since start.
//   R3: the event in a slot has the number t + 1 in its field `sequence`.
#ifndef HAKMEM_ALLOCATOR_FAILURES_FAILURE_RING_H_
#define HAKMEM_ALLOCATOR_FAILURES_FAILURE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/failures/failure_event.h"

namespace hakmem {

// Where a debugger finds the ring: the exported symbol hakmem_failure_ring.
// Fields are only ever added at the end; `version` changes when one of the
// others changes its meaning.
struct FailureRingDescriptor {
  char magic[8];  // "hakfail" and NUL
  std::uint32_t version;
  std::uint32_t descriptor_bytes;
  std::uint32_t capacity;  // slots
  std::uint32_t slot_bytes;
  std::uint32_t
      event_offset;  // in a slot, whose first 8 bytes are its sequence
  std::uint32_t event_bytes;
  const void* recorded;  // an uint64_t: how many events there have been
  const void* slots;
  const char* hakmem_version;
  const char* variant;
};

class FailureRing {
 public:
  static constexpr std::size_t kCapacity = 256;

  constexpr FailureRing() = default;
  FailureRing(const FailureRing&) = delete;
  FailureRing& operator=(const FailureRing&) = delete;

  // Numbers the event (its field `sequence`) and stores it.
  void Record(FailureEvent& event);

  // Stores a recorded event again, for the second and last time, unless its
  // slot has newer contents by now.
  void Complete(const FailureEvent& event);

  // How many events there have been since start.
  std::uint64_t recorded() const {
    return next_.load(std::memory_order_relaxed);
  }

  // Of the last event, whose number that is, and those before it, the first
  // that may still be there.
  static constexpr std::uint64_t FirstKept(std::uint64_t last) {
    return last < kCapacity ? 1 : last - kCapacity + 1;
  }

  // Copies the event with that number. False: it is no longer there, was
  // overwritten meanwhile, or its slot was busy, as 256 events had come while
  // one was being written.
  bool CopyOne(std::uint64_t number, FailureEvent& event) const;

  // In the child of a fork, whose events count from 1 again.
  void ChildAfterFork();

  constexpr FailureRingDescriptor Describe(const char* hakmem_version,
                                           const char* variant) const {
    return {.magic = "hakfail",
            .version = 1,
            .descriptor_bytes = sizeof(FailureRingDescriptor),
            .capacity = kCapacity,
            .slot_bytes = sizeof(Slot),
            .event_offset = sizeof(std::uint64_t),
            .event_bytes = sizeof(FailureEvent),
            .recorded = &next_,
            .slots = slots_,
            .hakmem_version = hakmem_version,
            .variant = variant};
  }

  // Every slot's sequence is even and none is beyond recorded(). Only while
  // nothing records.
  void CheckInvariants() const;

 private:
  static constexpr std::size_t kWords = sizeof(FailureEvent) / 8;
  static_assert(sizeof(FailureEvent) % 8 == 0);
  struct Slot {
    // Written by the recording thread, read by Copy.
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> words[kWords] = {};
  };

  static void Write(Slot& slot, const FailureEvent& event);

  Slot slots_[kCapacity] = {};
  // Written by recording threads, read by all. Last, as the slots' first page
  // is nobody's before the first failure, and each fork's child looks here.
  std::atomic<std::uint64_t> next_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_FAILURE_RING_H_
