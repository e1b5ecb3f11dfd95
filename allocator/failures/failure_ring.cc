#include "allocator/failures/failure_ring.h"

#include <cstring>

#include "allocator/base/check.h"

namespace hakmem {

// The words carry release and acquire themselves instead of being fenced,
// because ThreadSanitizer does not know fences; on x86-64 that costs nothing.

void FailureRing::Write(Slot& slot, const FailureEvent& event) {
  std::uint64_t words[kWords];
  std::memcpy(words, &event, sizeof(event));
  for (std::size_t i = 0; i < kWords; ++i) {
    // release: pairs with the acquire in CopyOne. Who reads this word also sees
    // the odd sequence.
    slot.words[i].store(words[i], std::memory_order_release);
  }
}

void FailureRing::Record(FailureEvent& event) {
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
  event.sequence = ticket + 1;
  Slot& slot = slots_[ticket % kCapacity];
  std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  // A slot that is being written, or has newer contents, belongs to a thread
  // that is a whole ring away. Neither waits for the other: this event is lost.
  if (sequence % 2 != 0 || sequence > 4 * ticket) return;
  // acquire: pairs with the release at the end of the slot's previous Record or
  // Complete, so that its words do not come after ours.
  if (!slot.sequence.compare_exchange_strong(sequence, 4 * ticket + 1,
                                             std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    return;
  }
  Write(slot, event);
  // release: pairs with the first acquire in CopyOne and with those of the
  // exchanges.
  slot.sequence.store(4 * ticket + 2, std::memory_order_release);
}

void FailureRing::Complete(const FailureEvent& event) {
  const std::uint64_t ticket = event.sequence - 1;
  Slot& slot = slots_[ticket % kCapacity];
  std::uint64_t expected = 4 * ticket + 2;
  // acquire: as in Record.
  if (!slot.sequence.compare_exchange_strong(expected, 4 * ticket + 3,
                                             std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    return;
  }
  Write(slot, event);
  // release: as in Record.
  slot.sequence.store(4 * ticket + 4, std::memory_order_release);
}

bool FailureRing::CopyOne(std::uint64_t number, FailureEvent& event) const {
  const std::uint64_t ticket = number - 1;
  const Slot& slot = slots_[ticket % kCapacity];
  // acquire: pairs with the last release in Record or Complete; the words of
  // this sequence, or newer ones, follow.
  const std::uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
  if (sequence != 4 * ticket + 2 && sequence != 4 * ticket + 4) return false;
  std::uint64_t words[kWords];
  for (std::size_t i = 0; i < kWords; ++i) {
    // acquire: pairs with the release of the word in Write. A newer word brings
    // its odd sequence along, and the test below fails.
    words[i] = slot.words[i].load(std::memory_order_acquire);
  }
  if (slot.sequence.load(std::memory_order_relaxed) != sequence) return false;
  std::memcpy(&event, words, sizeof(event));
  return true;
}

void FailureRing::ChildAfterFork() {
  // Then no slot has memory, and none shall have.
  if (recorded() == 0) return;
  next_.store(0, std::memory_order_relaxed);
  for (Slot& slot : slots_) slot.sequence.store(0, std::memory_order_relaxed);
}

void FailureRing::CheckInvariants() const {
  for (const Slot& slot : slots_) {
    const std::uint64_t sequence =
        slot.sequence.load(std::memory_order_relaxed);
    HAK_CHECK_EQ(sequence % 2, 0u);
    HAK_CHECK_LE(sequence, 4 * recorded());
    if (sequence == 0) continue;
    HAK_CHECK_EQ(slot.words[0].load(std::memory_order_relaxed),
                 (sequence + 2) / 4);  // R3
  }
}

}  // namespace hakmem
