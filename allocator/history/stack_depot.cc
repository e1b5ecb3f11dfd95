#include "allocator/history/stack_depot.h"

#include <algorithm>
#include <limits>

#include "allocator/base/bits.h"

namespace hakmem {
void StackDepot::Start(Address window, std::size_t bytes) {
  const FutexLockHolder hold(lock_);
  // A number counts steps.
  limit_bytes_ = RoundDown(
      std::min(bytes,
               std::size_t{std::numeric_limits<StackId>::max()} * kStepBytes),
      memory_.PageBytes());
  table_.Place(window, limit_bytes_, 0);
  constexpr std::size_t kBucketBytes = kBuckets * sizeof(std::atomic<StackId>);
  if (!table_.EnsureMapped(memory_, kBucketBytes).ok()) return;
  used_bytes_.store(kBucketBytes, std::memory_order_relaxed);
}

StackId StackDepot::Find(StackId first, std::uint32_t hash,
                         std::span<const std::uintptr_t> frames) const {
  for (StackId id = first; id != 0; id = EntryAt(id).next) {
    Entry& entry = EntryAt(id);
    if (entry.hash == hash && entry.count == frames.size() &&
        std::equal(frames.begin(), frames.end(), entry.frames())) {
      return id;
    }
  }
  return 0;
}

StackId StackDepot::Add(std::atomic<StackId>& bucket, std::uint32_t hash,
                        std::span<const std::uintptr_t> frames) {
  const std::size_t begin = used_bytes_.load(std::memory_order_relaxed);
  const std::size_t end = begin + sizeof(Entry) + frames.size_bytes();
  if (end > limit_bytes_ || !table_.EnsureMapped(memory_, end).ok()) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  const auto id = static_cast<StackId>(begin / kStepBytes);
  Entry& entry = EntryAt(id);
  entry.next = bucket.load(std::memory_order_relaxed);
  entry.hash = hash;
  entry.count = frames.size();
  std::copy(frames.begin(), frames.end(), entry.frames());
  stacks_.fetch_add(1, std::memory_order_relaxed);
  // release: pairs with the acquires in Next and Intern; the entry is whole.
  used_bytes_.store(end, std::memory_order_release);
  bucket.store(id, std::memory_order_release);
  return id;
}

StackId StackDepot::Intern(std::span<const std::uintptr_t> frames) {
  if (frames.empty() || used_bytes_.load(std::memory_order_relaxed) == 0) {
    return 0;
  }
  const auto hash =
      static_cast<std::uint32_t>(HashOf(frames.data(), frames.size()));
  std::atomic<StackId>& bucket = buckets()[hash % kBuckets];
  // acquire: pairs with the release in Add.
  const StackId found =
      Find(bucket.load(std::memory_order_acquire), hash, frames);
  if (found != 0) return found;
  const FutexLockHolder hold(lock_);
  // Another thread may have been faster.
  const StackId again =
      Find(bucket.load(std::memory_order_relaxed), hash, frames);
  return again != 0 ? again : Add(bucket, hash, frames);
}

std::span<const std::uintptr_t> StackDepot::Frames(StackId id) const {
  if (id == 0) return {};
  Entry& entry = EntryAt(id);
  return {entry.frames(), entry.count};
}

StackId StackDepot::Next(StackId id) const {
  std::size_t at = kBuckets * sizeof(std::atomic<StackId>);
  if (id != 0) at = id * kStepBytes + sizeof(Entry) + Frames(id).size_bytes();
  // acquire: pairs with the release in Add.
  return at < used_bytes_.load(std::memory_order_acquire)
             ? static_cast<StackId>(at / kStepBytes)
             : 0;
}

}  // namespace hakmem
