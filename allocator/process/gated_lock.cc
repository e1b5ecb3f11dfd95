#include "allocator/process/gated_lock.h"

#include <climits>

namespace hakmem {

HAK_AT_FORK constinit std::atomic<std::uint64_t> GatedLock::gate_{0};

void GatedLock::WaitAtGate() {
  for (;;) {
    // seq_cst: pairs with the store in CloseGate, and the one in OpenGate.
    const std::uint64_t gate = gate_.load(std::memory_order_seq_cst);
    if (gate == 0 || gate == FutexLock::Self()) return;
    lock_.Unlock();
    // Returns at once when the gate has been opened meanwhile.
    Futex(gate_, FUTEX_WAIT, gate);
    lock_.Lock();
  }
}

void GatedLock::CloseGate() {
  FutexLock::Identify();
  // seq_cst: pairs with the loads in Lock and TryLock.
  gate_.store(FutexLock::Self(), std::memory_order_seq_cst);
}

void GatedLock::OpenGate() {
  // release: pairs with the loads in Lock and TryLock, whose threads see what
  // the forking thread did meanwhile.
  gate_.store(0, std::memory_order_release);
  Futex(gate_, FUTEX_WAKE, INT_MAX);
}

}  // namespace hakmem
