#include "allocator/heap/magazine_pool.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/probe.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"
#include "allocator/heap/slab_holes.h"

namespace hakmem {
namespace {

// What `if_many` takes for many.
constexpr std::size_t kMany = 1 * kMiB / kMagazineBytes;
// How many are put before others come in.
constexpr std::uint32_t kMostPut = 1024;

}  // namespace

void MagazinePool::Place(Region::Window window) {
  const FutexLockHolder hold(lock_);
  table_.Place(window.begin, window.bytes, 0);
}

// No sheet has free magazines. False: the table cannot grow.
bool MagazinePool::AddSheet() {
  const std::size_t end = (UnitOf(sheets_) + 1) * kUnitBytes;
  if (!table_.EnsureMapped(memory_, end).ok()) return false;
  first_ = static_cast<UnitIndex>(sheets_++);
  SlabOf(first_).Start(kClass, /*first_unit=*/0);
  return true;
}

std::uint32_t MagazinePool::Take(std::uint32_t count, MagazineTop& list) {
  const FutexLockHolder hold(lock_);
  AddByOwner(calls_, 1);
  list = 0;
  std::uint32_t taken = 0;
  for (; taken < count && (first_ != kNoUnit || AddSheet()); ++taken) {
    Slab& slab = SlabOf(first_);
    free_ -= slab.bump() != slab.handed_out() ? 1U : 0U;
    void* block;
    slab.Take(SheetAt(first_), &block, 1);
    const auto magazine = reinterpret_cast<MagazineTop>(block);
    if (slab.available() == 0) first_ = slab.next;
    // Their page is in use, but for a sheet's first: its lowest is taken first.
    StartFetches(magazine);
    MagazineLink(magazine) = list;
    list = magazine;
  }
  purged_ = std::min(purged_, free_);
  return taken;
}

void MagazinePool::Put(MagazineTop first) {
  const FutexLockHolder hold(lock_);
  AddByOwner(calls_, 1);
  for (std::uint32_t put = 0; first != 0; ++put) {
    if (put == kMostPut) {
      lock_.UnlockForOthers();
      lock_.Lock();
      AddByOwner(calls_, 1);
      put = 0;
    }
    void* const block = reinterpret_cast<void*>(MagazineStart(first));
    first = MagazineLink(first);
    const std::size_t sheet = SheetOf(reinterpret_cast<MagazineTop>(block));
    Slab& slab = SlabOf(sheet);
    if (slab.available() == 0) {
      slab.next = std::exchange(first_, static_cast<UnitIndex>(sheet));
    }
    bool sound = false;
    slab.Put(SheetAt(sheet), &block, 1, sound);
    HAK_CHECK(sound);  // D1
    slab.looks = 0;
    ++free_;
  }
}

// Where the kernel refuses, the rest is tried another time.
std::size_t MagazinePool::PurgeSheet(std::size_t sheet) {
  Slab& slab = SlabOf(sheet);
  if (slab.looks != 0) return 0;
  const HolePurge purge =
      PurgeHoles(memory_, slab, SheetAt(sheet), [&](Address at, std::size_t n) {
        AddByOwner(purge_calls_, 1);
        HAK_PROBE2(purge, at, n);
        return memory_.Purge(at, n).ok();
      });
  if (!purge.refused) slab.looks = 1;
  return purge.bytes;
}

// By trying: a signal handler may come here that interrupted a Purge, or forks.
std::size_t MagazinePool::Purge(bool if_many) {
  FutexLock::Identify();
  if (!lock_.TryLock()) return 0;
  std::size_t bytes = 0;
  const bool is_worth = free_ >= purged_ + (if_many ? kMany : 0);
  for (std::size_t sheet = 0; is_worth && sheet < sheets_; ++sheet) {
    bytes += PurgeSheet(sheet);
    lock_.UnlockForOthers();
    lock_.Lock();
  }
  if (is_worth) purged_ = free_;
  lock_.Unlock();
  return bytes;
}

void MagazinePool::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  std::size_t free = 0;
  std::size_t listed = 0;
  for (std::size_t sheet = 0; sheet < sheets_; ++sheet) {
    const Slab& slab = SlabOf(sheet);
    slab.CheckInvariants();
    free += slab.bump() - slab.handed_out();
    listed += slab.available() != 0 ? 1U : 0U;
  }
  HAK_CHECK_EQ(free, free_);  // D3
  for (UnitIndex sheet = first_; sheet != kNoUnit; sheet = SlabOf(sheet).next) {
    --listed;
  }
  HAK_CHECK_EQ(listed, 0U);  // D2
}

void MagazinePool::CheckNoneIsLost(std::size_t in_use) {
  if (forked_) return;
  const FutexLockHolder hold(lock_);
  for (std::size_t sheet = 0; sheet < sheets_; ++sheet) {
    in_use -= SlabOf(sheet).handed_out();
  }
  HAK_CHECK_EQ(in_use, 0U);  // D1
}

}  // namespace hakmem
