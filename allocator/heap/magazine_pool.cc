#include "allocator/heap/magazine_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/probe.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"

namespace hakmem {
namespace {

constexpr std::uint8_t kAllFree = 0xff;
// What `if_many` takes for many.
constexpr std::size_t kManyPages = 1 * kMiB / MagazinePool::kPageBytes;

}  // namespace

void MagazinePool::Place(Region::Window window) {
  const FutexLockHolder hold(lock_);
  table_.Place(window.begin, window.bytes, 0);
}

// Null: the table cannot grow.
MagazinePool::Sheet* MagazinePool::Grow() {
  const std::size_t end = (sheets_ + 1) * kSheetBytes;
  if (!table_.EnsureMapped(memory_, end).ok()) return nullptr;
  Sheet& sheet = SheetAt(sheets_++);
  std::memset(sheet.free, kAllFree, sizeof(sheet.free));
  sheet.free[0] = kAllFree - 1;  // the head
  sheet.clean = ~std::uint64_t{1};
  sheet.next = nullptr;
  list_ = &sheet;
  return &sheet;
}

// The lowest one of the first sheet that has any.
MagazineTop MagazinePool::TakeOne() {
  Sheet* const sheet = list_ != nullptr ? list_ : Grow();
  if (sheet == nullptr) return 0;
  std::uint32_t page = 0;
  while (sheet->free[page] == 0) ++page;
  std::uint8_t& free = sheet->free[page];
  const std::uint64_t bit = std::uint64_t{1} << page;
  if (free == kAllFree && (sheet->clean & bit) == 0) --dirty_pages_;
  sheet->clean &= ~bit;
  const auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
  const MagazineTop magazine = reinterpret_cast<MagazineTop>(sheet) +
                               page * kPageBytes + slot * kMagazineBytes;
  free = static_cast<std::uint8_t>(free & (free - 1));
  while (page < kSheetPages && sheet->free[page] == 0) ++page;
  if (page == kSheetPages) list_ = sheet->next;
  // Their page is in use, as the lowest is taken first.
  StartFetches(magazine);
  return magazine;
}

void MagazinePool::PutOne(MagazineTop magazine) {
  const std::size_t offset = magazine - table_.start();
  Sheet& sheet = SheetAt(offset / kSheetBytes);
  const std::size_t page = offset % kSheetBytes / kPageBytes;
  const auto bit =
      static_cast<std::uint8_t>(1U << offset % kPageBytes / kMagazineBytes);
  HAK_CHECK_EQ(sheet.free[page] & bit, 0);  // D1
  const bool was_full =
      std::all_of(sheet.free, sheet.free + kSheetPages,
                  [](std::uint8_t free) { return free == 0; });
  sheet.free[page] = static_cast<std::uint8_t>(sheet.free[page] | bit);
  if (sheet.free[page] == kAllFree) ++dirty_pages_;
  if (!was_full) return;
  sheet.next = list_;
  list_ = &sheet;
}

MagazineTop MagazinePool::Take() {
  const FutexLockHolder hold(lock_);
  AddByOwner(calls_, 1);
  return TakeOne();
}

std::uint32_t MagazinePool::TakeList(std::uint32_t count, MagazineTop& list) {
  const FutexLockHolder hold(lock_);
  AddByOwner(calls_, 1);
  list = 0;
  for (std::uint32_t taken = 0; taken < count; ++taken) {
    const MagazineTop magazine = TakeOne();
    if (magazine == 0) return taken;
    MagazineLink(magazine) = list;
    list = magazine;
  }
  return count;
}

void MagazinePool::PutList(MagazineTop first) {
  const FutexLockHolder hold(lock_);
  AddByOwner(calls_, 1);
  while (first != 0) {
    const MagazineTop magazine = first;
    first = MagazineLink(magazine);
    PutOne(magazine);
  }
}

// The kernel's pages may be longer: as many of ours at once. Where it refuses,
// they stay dirty.
std::size_t MagazinePool::PurgeSheet(Sheet& sheet) {
  const std::size_t step =
      std::clamp<std::size_t>(memory_.PageBytes() / kPageBytes, 1, kSheetPages);
  const std::uint64_t ones = ~std::uint64_t{0} >> (kSheetPages - step);
  const auto goes = [&](std::size_t page) {
    return page < kSheetPages && (sheet.clean >> page & ones) != ones &&
           std::all_of(
               sheet.free + page, sheet.free + page + step,
               [](std::uint8_t free) { return free == kAllFree; });
  };
  std::size_t purged_bytes = 0;
  for (std::size_t first = 0; first < kSheetPages; first += step) {
    std::size_t end = first;
    std::uint64_t pages = 0;
    for (; goes(end); end += step) pages |= ones << end;
    if (end == first) continue;
    const Address begin =
        reinterpret_cast<Address>(&sheet) + first * kPageBytes;
    const std::size_t bytes = (end - first) * kPageBytes;
    AddByOwner(purge_calls_, 1);
    if (!memory_.Purge(begin, bytes).ok()) break;
    HAK_PROBE2(purge, begin, bytes);
    dirty_pages_ -=
        static_cast<std::size_t>(std::popcount(pages & ~sheet.clean));
    sheet.clean |= pages;
    purged_bytes += bytes;
    first = end;
  }
  return purged_bytes;
}

// By trying: a signal handler may come here that interrupted a Purge, or forks.
std::size_t MagazinePool::Purge(bool if_many) {
  FutexLock::Identify();
  if (!lock_.TryLock()) return 0;
  std::size_t bytes = 0;
  const bool is_worth = dirty_pages_ >= (if_many ? kManyPages : 1);
  for (std::size_t i = 0; is_worth && i < sheets_; ++i) {
    bytes += PurgeSheet(SheetAt(i));
    lock_.UnlockForOthers();
    lock_.Lock();
  }
  lock_.Unlock();
  return bytes;
}

void MagazinePool::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  std::size_t dirty = 0;
  std::size_t with_free = 0;
  for (std::size_t i = 0; i < sheets_; ++i) {
    const Sheet& sheet = SheetAt(i);
    HAK_CHECK_EQ(sheet.free[0] & 1, 0);  // D1
    bool any = false;
    for (std::size_t page = 0; page < kSheetPages; ++page) {
      const bool clean = (sheet.clean >> page & 1) != 0;
      if (clean) HAK_CHECK_EQ(sheet.free[page], kAllFree);
      dirty += sheet.free[page] == kAllFree && !clean ? 1U : 0U;
      any |= sheet.free[page] != 0;
    }
    with_free += any ? 1U : 0U;
  }
  HAK_CHECK_EQ(dirty, dirty_pages_);  // D3
  std::size_t listed = 0;
  for (const Sheet* sheet = list_; sheet != nullptr; sheet = sheet->next) {
    ++listed;
  }
  HAK_CHECK_EQ(listed, with_free);  // D2
}

void MagazinePool::CheckNoneIsLost(std::size_t in_use) {
  if (forked_) return;
  const FutexLockHolder hold(lock_);
  std::size_t made = 0;
  std::size_t free = 0;
  for (std::size_t i = 0; i < sheets_; ++i) {
    made += kSheetBytes / kMagazineBytes - 1;
    for (const std::uint8_t bits : SheetAt(i).free) {
      free += static_cast<std::size_t>(std::popcount(bits));
    }
  }
  HAK_CHECK_EQ(in_use + free, made);  // D1
}

}  // namespace hakmem
