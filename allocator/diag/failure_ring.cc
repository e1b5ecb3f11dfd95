#include "allocator/diag/failure_ring.h"

#include <algorithm>
#include <cstring>

#include "allocator/base/check.h"

namespace hakmem {

// The words carry release and acquire themselves instead of being fenced,
// because ThreadSanitizer does not know fences; on x86-64 that costs nothing.

void FailureRing::Record(const FailureEvent& event) {
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[ticket % kCapacity];
  std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  // A slot that is being written, or has newer contents, belongs to a thread
  // that is a whole ring away. Neither waits for the other: this event is lost.
  if (sequence % 2 != 0 || sequence > 2 * ticket) return;
  // acquire: pairs with the release at the end of the slot's previous Record,
  // so that its words do not come after ours.
  if (!slot.sequence.compare_exchange_strong(sequence, 2 * ticket + 1,
                                             std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    return;
  }
  std::uint64_t words[kWords] = {};
  std::memcpy(words, &event, sizeof(event));
  for (std::size_t i = 0; i < kWords; ++i) {
    // release: pairs with the acquire in Copy. Who reads this word also sees
    // the odd sequence.
    slot.words[i].store(words[i], std::memory_order_release);
  }
  // release: pairs with the first acquire in Copy and with the one above.
  slot.sequence.store(2 * ticket + 2, std::memory_order_release);
}

std::uint64_t FailureRing::recorded() const {
  return next_.load(std::memory_order_relaxed);
}

std::size_t FailureRing::Copy(FailureEvent* events,
                              std::size_t capacity) const {
  const std::uint64_t end = recorded();
  const std::uint64_t begin = end > kCapacity ? end - kCapacity : 0;
  std::size_t count = 0;
  for (std::uint64_t ticket = end; ticket > begin && count < capacity;) {
    --ticket;
    const Slot& slot = slots_[ticket % kCapacity];
    // acquire: pairs with the last release in Record; the words of this
    // sequence, or newer ones, follow.
    if (slot.sequence.load(std::memory_order_acquire) != 2 * ticket + 2) {
      continue;
    }
    std::uint64_t words[kWords];
    for (std::size_t i = 0; i < kWords; ++i) {
      // acquire: pairs with the release of the word in Record. A newer word
      // brings its odd sequence along, and the test below fails.
      words[i] = slot.words[i].load(std::memory_order_acquire);
    }
    if (slot.sequence.load(std::memory_order_relaxed) != 2 * ticket + 2) {
      continue;
    }
    std::memcpy(&events[count], words, sizeof(FailureEvent));
    ++count;
  }
  return count;
}

void FailureRing::ChildAfterFork() {
  for (Slot& slot : slots_) {
    if (slot.sequence.load(std::memory_order_relaxed) % 2 != 0) {
      slot.sequence.store(0, std::memory_order_relaxed);
    }
  }
}

void FailureRing::CheckInvariants() const {
  for (const Slot& slot : slots_) {
    const std::uint64_t sequence =
        slot.sequence.load(std::memory_order_relaxed);
    HAK_CHECK_EQ(sequence % 2, 0u);
    HAK_CHECK_LE(sequence, 2 * recorded());
  }
}

}  // namespace hakmem
