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

Refusal OverHeapLimit(std::size_t bytes) {
  return {.reason = FailureReason::kExhaustion,
          .detail = FailureDetail::kHeapLimit,
          .bytes = bytes};
}

}  // namespace

Ace::HugeGrant Ace::GrantHuge(std::size_t bytes, std::size_t alignment_bytes) {
  const FutexLockHolder hold(lock_);
  if (!WithinHeapLimit(bytes)) return {0, OverHeapLimit(bytes)};
  const HugePool::Result result = huge_.Grant(memory_, bytes, alignment_bytes);
  if (result.address == 0) return {0, HugeRefusal(result, bytes)};
  AddMapped(bytes);
  AskForHugePagesOf(result.address);
  return {result.address, {}};
}

bool Ace::ReleaseHuge(Address address) {
  const FutexLockHolder hold(lock_);
  if (!huge_.IsLive(address)) return false;
  const std::size_t bytes = huge_.Release(memory_, address);
  mapped_bytes_.store(mapped_bytes() - bytes, std::memory_order_relaxed);
  return true;
}

Ace::HugeGrant Ace::ResizeHuge(Address address, std::size_t bytes) {
  const FutexLockHolder hold(lock_);
  HAK_CHECK(huge_.IsLive(address));
  const std::size_t old_bytes = huge_.BlockBytes(address);
  const std::size_t more_bytes = bytes > old_bytes ? bytes - old_bytes : 0;
  if (!WithinHeapLimit(more_bytes)) return {0, OverHeapLimit(more_bytes)};
  const HugePool::Result result = huge_.Resize(memory_, address, bytes);
  if (result.address == 0) return {0, HugeRefusal(result, bytes)};
  const std::size_t new_bytes = huge_.BlockBytes(result.address);
  if (new_bytes > old_bytes) AskForHugePagesOf(result.address);
  if (new_bytes >= old_bytes) {
    AddMapped(new_bytes - old_bytes);
  } else {
    mapped_bytes_.store(mapped_bytes() - (old_bytes - new_bytes),
                        std::memory_order_relaxed);
  }
  return {result.address, {}};
}

std::size_t Ace::HugeBytes(Address address) {
  const FutexLockHolder hold(lock_);
  return huge_.IsLive(address) ? huge_.BlockBytes(address) : 0;
}

Address Ace::NextHuge(Address address) {
  const FutexLockHolder hold(lock_);
  return huge_.NextBlock(address);
}

Ace::HugePlace Ace::FindHuge(Address address, Address& start,
                             std::size_t& bytes) {
  const FutexLockHolder hold(lock_);
  if (!region_.placed() || !huge_.Contains(address)) return HugePlace::kOutside;
  if (huge_.IsLive(address)) return HugePlace::kLive;
  start = huge_.BlockAround(address);
  if (start != 0) {
    bytes = huge_.BlockBytes(start);
    return HugePlace::kInside;
  }
  if (!huge_.WasFreed(address)) return HugePlace::kNone;
  bytes = huge_.BlockBytes(address);
  return HugePlace::kFreed;
}

Ace::HugeFacts Ace::TryFindHuge(Address address) {
  if (!lock_.TryLock()) return {.place = HugePlace::kNotKnown};
  HugeFacts facts;
  if (region_.placed() && huge_.Contains(address)) {
    facts.start = huge_.BlockBefore(address);
    facts.live = facts.start != 0;
    if (facts.live) facts.bytes = huge_.BlockBytes(facts.start);
    facts.place = facts.live && address - facts.start < facts.bytes
                      ? HugePlace::kInside
                      : HugePlace::kNone;
    const Address freed =
        facts.place == HugePlace::kNone ? huge_.FreedAround(address) : 0;
    if (freed != 0) {
      facts = {HugePlace::kFreed, freed, huge_.BlockBytes(freed), false};
    }
  }
  lock_.Unlock();
  return facts;
}

}  // namespace hakmem
