#include "allocator/heap/metadata_pool.h"

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

void MetadataPool::Place(Region::Window window) {
  const FutexLockHolder hold(lock_);
  table_.Place(window.begin, window.bytes, 0);
}

void* MetadataPool::Take() {
  const FutexLockHolder hold(lock_);
  if (free_ != nullptr) {
    FreePiece* piece = free_;
    free_ = piece->next;
    --free_count_;
    return piece;
  }
  const std::size_t end = (made_ + 1) * piece_bytes_;
  if (!table_.EnsureMapped(memory_, end).ok()) return nullptr;
  return reinterpret_cast<void*>(table_.start() + made_++ * piece_bytes_);
}

void MetadataPool::Put(void* piece) {
  const FutexLockHolder hold(lock_);
  auto* free_piece = static_cast<FreePiece*>(piece);
  free_piece->next = free_;
  free_ = free_piece;
  ++free_count_;
}

void MetadataPool::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  std::size_t count = 0;
  for (const FreePiece* piece = free_; piece != nullptr; piece = piece->next) {
    const auto address = reinterpret_cast<Address>(piece);
    HAK_CHECK_LT(address - table_.start(), made_ * piece_bytes_);
    HAK_CHECK(IsAligned<Address>(address, piece_bytes_));
    ++count;
  }
  HAK_CHECK_EQ(count, free_count_);
  HAK_CHECK_LE(count, made_);  // D1
}

}  // namespace hakmem
