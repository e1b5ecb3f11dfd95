#include "allocator/process/gated_lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "allocator/base/system_call.h"

namespace hakmem {

void GatedLock::WaitAtGate() {
  for (;;) {
    // seq_cst: pairs with the store in CloseGate, and the one in OpenGate.
    const std::uint64_t gate = gate_.load(std::memory_order_seq_cst);
    if (gate == 0 || gate == FutexLock::Self()) return;
    lock_.Unlock();
    // Returns at once when the gate has been opened meanwhile.
    SystemCall(SYS_futex, FutexHalf(gate_), FUTEX_WAIT_PRIVATE,
               static_cast<std::uint32_t>(gate), nullptr);
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
  SystemCall(SYS_futex, FutexHalf(gate_), FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace hakmem
