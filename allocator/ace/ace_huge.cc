// Ace: Huge blocks.

#include <cerrno>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

// The pool counts it before it lets go of the lock, too.
void Ace::ResizedHuge(std::size_t more_bytes, std::size_t less_bytes) {
  state_.retention.NoteHuge(more_bytes - less_bytes);
  state_.SubtractMapped(less_bytes - more_bytes);
}

BlockGrant Ace::GrantHuge(std::size_t bytes, std::size_t alignment_bytes) {
  const FutexLockHolder hold(state_.lock);
  if (!state_.retention.HasRoomFor(bytes)) return {0, OverHeapLimit(bytes)};
  const BlockGrant grant = huge_.Grant(state_.memory, bytes, alignment_bytes);
  if (grant.address == 0) return grant;
  ResizedHuge(bytes, 0);
  EndHuge(grant.address);
  return grant;
}

// A Huge block, or its addition, has just been mapped.
void Ace::EndHuge(Address address) {
  state_.NotePeak();
  if (state_.retention.HasLimit()) KeepToLimit();
  if (state_.huge_pages == HugePages::kOn) {
    state_.memory.AskForHugePages(address, huge_.BytesOf(address));
  }
}

bool Ace::MayStayHuge() {
  const FutexLockHolder hold(state_.lock);
  return huge_.block_count() <= max_staying_huge_;
}

void Ace::ReleaseHuge(Address address, std::size_t lost_bytes) {
  const FutexLockHolder hold(state_.lock);
  ResizedHuge(0, huge_.Release(state_.memory, address, lost_bytes));
}

BlockGrant Ace::ResizeHuge(Address address, std::size_t bytes) {
  const FutexLockHolder hold(state_.lock);
  const std::size_t old_bytes = huge_.BytesOf(address);
  const std::size_t more_bytes = bytes > old_bytes ? bytes - old_bytes : 0;
  if (!state_.retention.HasRoomFor(more_bytes)) {
    return {0, OverHeapLimit(more_bytes)};
  }
  ResizedHuge(more_bytes, 0);
  const BlockGrant grant = huge_.Resize(state_.memory, address, bytes);
  if (grant.address == 0) {
    ResizedHuge(0, more_bytes);
    return grant;
  }
  ResizedHuge(0, old_bytes + more_bytes - huge_.BytesOf(grant.address));
  if (more_bytes != 0) EndHuge(grant.address);
  return grant;
}

Address Ace::NextHuge(Address address) {
  const FutexLockHolder hold(state_.lock);
  return huge_.NextBlock(address);
}

}  // namespace hakmem
