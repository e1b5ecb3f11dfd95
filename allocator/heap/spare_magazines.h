// A heap's magazines without blocks, on their way to and from the pool.
//
// Owns: the list of them. Called by: ThreadHeap, under its lock.
// Thread-safety: none of its own; the pool has a lock that all heaps share.
//
// Invariants:
//   Y1: the list has count() magazines, and idle_ is at most count().
//   Y2: Take leaves bytes() as it is or lower, PutOrGiveBack adds at most
//   `room`,
//       or nothing.
#ifndef HAKMEM_ALLOCATOR_HEAP_SPARE_MAGAZINES_H_
#define HAKMEM_ALLOCATOR_HEAP_SPARE_MAGAZINES_H_

#include <algorithm>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/magazine_pool.h"

namespace hakmem {

class SpareMagazines {
 public:
  // So many stay whether or not there are bursts.
  static constexpr std::uint32_t kAlwaysKept = 16;
  // So many are given back at once when there is no room for one more.
  static constexpr std::uint32_t kGivenAtOnce = kAlwaysKept / 2;
  // The pool is asked for one in so many of those that the heap has, at once.
  static constexpr std::uint32_t kBatchShare = 32;
  static constexpr std::uint32_t kMaxBatch = kAlwaysKept;

  constexpr SpareMagazines() = default;
  SpareMagazines(const SpareMagazines&) = delete;
  SpareMagazines& operator=(const SpareMagazines&) = delete;

  std::uint32_t count() const { return count_; }
  std::uint32_t held() const { return held_; }
  // Their part of the budget of what a thread may keep.
  std::uint64_t bytes() const {
    return std::uint64_t{count_ - std::min(count_, kAlwaysKept)} *
           kMagazineBytes;
  }

  // An empty magazine; 0: no metadata is left.
  HAK_ALWAYS_INLINE MagazineTop Take(MagazinePool& pool) {
    if (list_ == 0 && !TakeBatch(pool)) [[unlikely]]
      return 0;
    const MagazineTop magazine = list_;
    list_ = MagazineLink(magazine);
    // The next one is read while this one is filled.
    __builtin_prefetch(reinterpret_cast<void*>(list_));
    idle_ = std::min(idle_, --count_);
    return magazine;
  }

  // `start` is an empty magazine's, for which there is room.
  void Put(MagazineTop start) {
    MagazineLink(start) = list_;
    list_ = start;
    ++count_;
  }
  // The same; `room` is what is left of the budget.
  void PutOrGiveBack(MagazinePool& pool, MagazineTop start,
                     std::uint64_t room) {
    Put(start);
    if (count_ > kAlwaysKept && room < kMagazineBytes) {
      KeepAtMost(pool, count_ - kGivenAtOnce);
    }
  }

  // A magazine that Take gave is the heap's no more; one of another heap's is
  // its own from now on.
  void NoteGone() { --held_; }
  void NoteCome() { ++held_; }

  // Gives back what nobody needed since the last Trim.
  void Trim(MagazinePool& pool) {
    KeepAtMost(pool, std::max(count_ - idle_, kAlwaysKept));
    idle_ = count_;
  }

  void KeepAtMost(MagazinePool& pool, std::uint32_t kept) {
    if (count_ <= kept) return;
    const MagazineTop first = list_;
    MagazineTop last = first;
    const std::uint32_t given = count_ - kept;
    for (std::uint32_t i = 1; i < given; ++i) last = MagazineLink(last);
    list_ = MagazineLink(last);
    MagazineLink(last) = 0;
    pool.Put(first);
    count_ = kept;
    idle_ = std::min(idle_, kept);
    held_ -= given;
  }

  HAK_COLD void CheckInvariants() const {
    std::uint32_t listed = 0;
    for (MagazineTop top = list_; top != 0; top = MagazineLink(top)) ++listed;
    HAK_CHECK_EQ(listed, count_);  // Y1
    HAK_CHECK_LE(idle_, count_);   // Y1
  }

 private:
  // False: no metadata is left.
  HAK_NOINLINE bool TakeBatch(MagazinePool& pool) {
    count_ = pool.Take(std::clamp(held_ / kBatchShare, 1U, kMaxBatch), list_);
    held_ += count_;
    return count_ != 0;
  }

  MagazineTop list_ = 0;
  std::uint32_t count_ = 0;
  // The fewest there were since the last Trim: so many nobody needed.
  std::uint32_t idle_ = 0;
  // The heap's magazines of all kinds, and those that a fork has dropped.
  std::uint32_t held_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SPARE_MAGAZINES_H_
