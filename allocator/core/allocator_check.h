// Allocator: forks, and checks of its invariants and of every block.
//
// Owns: nothing. Called by: frontend, tests, fuzzers. Thread-safety: as each
// declaration in allocator.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CHECK_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "allocator/core/allocator_parts.h"
#include "allocator/core/heap_check.h"

namespace hakmem {

template <const Config& kConfig>
void Allocator<kConfig>::CheckInvariants() {
  ace_.CheckInvariants();
  registry_.CheckInvariants();
  guards_.CheckInvariants();
  profile_.CheckInvariants();
  recovery_.CheckInvariants();
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::CheckHeap(Heap*& self) {
  EnsureStarted();
  ace_.CheckInvariants();
  registry_.CheckWhileRunning(*self);
  return CheckBlocks(self, nullptr, PointerUse::kCheckHeap);
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::CheckBlocks(Heap* self, HeapCheckCursor* place,
                                            PointerUse use) {
  if constexpr (kConfig.check_bounds) {
    HeapCheck check(registry_.system(), hardening_.secret(),
                    kConfig.check_fill_on_reuse ? hardening_.clear_bytes() : 0);
    // A round of the helper thread reads 16 MiB of blocks at most; the check at
    // the end a MiB of Tiny blocks, and 4 MiB of longer ones.
    constexpr std::uint32_t kSteps = 256;
    constexpr std::uint32_t kStepsAtEnd = 64;
    const BlockReport call = Heaps::ReportFor(self, nullptr, use);
    if (place != nullptr) return check.RunOn(call, *place, kSteps);
    return use == PointerUse::kExitCheck ? check.RunAtEnd(call, kStepsAtEnd)
                                         : check.Run(call);
  }
  return 0;
}

template <const Config& kConfig>
void Allocator<kConfig>::PrepareFork() {
  start_lock_.LockForFork();
  registry_.PrepareFork();
  guards_.lock().LockForFork();
  profile_.lock().LockForFork();
}

template <const Config& kConfig>
void Allocator<kConfig>::ParentAfterFork() {
  profile_.lock().UnlockAfterFork();
  guards_.lock().UnlockAfterFork();
  registry_.ParentAfterFork();
  start_lock_.UnlockAfterFork();
}

template <const Config& kConfig>
void Allocator<kConfig>::ChildAfterFork(Heap*& self) {
  profile_.lock().ResetAfterFork();
  guards_.lock().ResetAfterFork();
  heaps_.ChildAfterFork(self);
  recovery_.ChildAfterFork();
  start_lock_.ResetAfterFork();
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CHECK_H_
