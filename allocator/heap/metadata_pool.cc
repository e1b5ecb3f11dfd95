#include "allocator/heap/metadata_pool.h"

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

void MetadataPool::Place(Region::Window window) {
  const FutexLockHolder hold(lock_);
  table_.Place(window.begin, window.bytes, 0);
}

void MetadataPool::CountCall() {
  calls_.store(calls_.load(std::memory_order_relaxed) + 1,
               std::memory_order_relaxed);
}

MetadataPool::Piece* MetadataPool::TakeOne() {
  if (free_ != nullptr) {
    Piece* piece = free_;
    free_ = piece->next;
    --free_count_;
    return piece;
  }
  const std::size_t end = (made_ + 1) * piece_bytes_;
  if (!table_.EnsureMapped(memory_, end).ok()) return nullptr;
  return reinterpret_cast<Piece*>(table_.start() + made_++ * piece_bytes_);
}

void* MetadataPool::Take() {
  const FutexLockHolder hold(lock_);
  CountCall();
  return TakeOne();
}

std::uint32_t MetadataPool::TakeList(std::uint32_t count, Piece*& list) {
  const FutexLockHolder hold(lock_);
  CountCall();
  list = nullptr;
  for (std::uint32_t taken = 0; taken < count; ++taken) {
    Piece* piece = TakeOne();
    if (piece == nullptr) return taken;
    piece->next = list;
    list = piece;
  }
  return count;
}

void MetadataPool::Put(void* piece) {
  auto* const only = static_cast<Piece*>(piece);
  PutList(only, only, 1);
}

void MetadataPool::PutList(Piece* first, Piece* last, std::uint32_t count) {
  const FutexLockHolder hold(lock_);
  CountCall();
  last->next = free_;
  free_ = first;
  free_count_ += count;
}

void MetadataPool::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  std::size_t count = 0;
  for (const Piece* piece = free_; piece != nullptr; piece = piece->next) {
    const auto address = reinterpret_cast<Address>(piece);
    HAK_CHECK_LT(address - table_.start(), made_ * piece_bytes_);
    HAK_CHECK(IsAligned<Address>(address, piece_bytes_));
    ++count;
  }
  HAK_CHECK_EQ(count, free_count_);
  HAK_CHECK_LE(count, made_);  // D1
}

}  // namespace hakmem
