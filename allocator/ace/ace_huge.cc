// Ace: Huge blocks.

#include <cerrno>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

namespace {

Refusal HugeRefusal(const HugePool::Result& result, std::size_t bytes) {
  const bool tables = result.tables && result.status.error_number == ENOSPC;
  if (result.exhausted || tables) {
    return {
        .reason = FailureReason::kExhaustion,
        .detail = tables ? FailureDetail::kMetadata : FailureDetail::kRegion,
        .bytes = bytes};
  }
  return RefusedByKernel(result.status);
}

}  // namespace

Ace::HugeGrant Ace::GrantHuge(std::size_t bytes, std::size_t alignment_bytes) {
  const FutexLockHolder hold(lock_);
  if (!HasRoomFor(bytes)) return {0, OverHeapLimit(bytes)};
  const HugePool::Result result = huge_.Grant(memory_, bytes, alignment_bytes);
  if (result.address == 0) return {0, HugeRefusal(result, bytes)};
  AddMapped(bytes);
  if (retention_.HasLimit()) KeepToLimit();
  AskForHugePagesOf(result.address);
  return {result.address, {}};
}

bool Ace::MayStayHuge() {
  const FutexLockHolder hold(lock_);
  return huge_.block_count() <= max_staying_huge_;
}

void Ace::ReleaseHuge(Address address, std::size_t lost_bytes) {
  const FutexLockHolder hold(lock_);
  SubtractMapped(huge_.Release(memory_, address, lost_bytes));
}

Ace::HugeGrant Ace::ResizeHuge(Address address, std::size_t bytes) {
  const FutexLockHolder hold(lock_);
  const std::size_t old_bytes = huge_.BytesOf(address);
  const std::size_t more_bytes = bytes > old_bytes ? bytes - old_bytes : 0;
  if (!HasRoomFor(more_bytes)) return {0, OverHeapLimit(more_bytes)};
  // The pool counts it before it lets go of the lock, too.
  mapped_bytes_.store(mapped_bytes() + more_bytes, std::memory_order_relaxed);
  const HugePool::Result result = huge_.Resize(memory_, address, bytes);
  if (result.address == 0) {
    SubtractMapped(more_bytes);
    return {0, HugeRefusal(result, bytes)};
  }
  if (more_bytes != 0) AskForHugePagesOf(result.address);
  SubtractMapped(old_bytes + more_bytes - huge_.BytesOf(result.address));
  AddMapped(0);
  if (retention_.HasLimit()) KeepToLimit();
  return {result.address, {}};
}

Address Ace::NextHuge(Address address) {
  const FutexLockHolder hold(lock_);
  return huge_.NextBlock(address);
}

}  // namespace hakmem
