#include "allocator/heap/metadata_pool.h"

#include <algorithm>
#include <new>
#include <utility>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/probe.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"

namespace hakmem {
namespace {

using Piece = MetadataPool::Piece;

// The kernel is given so much at once: others may want to map memory meanwhile.
constexpr std::size_t kSliceBytes = 16 * kMiB;
// What `only_many` takes for many.
constexpr std::size_t kManyBytes = 1 * kMiB;

Address AddressOf(const void* piece) {
  return reinterpret_cast<Address>(piece);
}

// Of sorted lists, which may be empty.
Piece* Merge(Piece* one, Piece* other) {
  Piece* merged = nullptr;
  Piece** end = &merged;
  while (one != nullptr && other != nullptr) {
    Piece*& lower = AddressOf(one) < AddressOf(other) ? one : other;
    *end = lower;
    end = &lower->next;
    lower = lower->next;
  }
  *end = one != nullptr ? one : other;
  return merged;
}

// Cuts off as many pieces as each lie before or behind those before; returns
// them sorted. `list` is not empty.
Piece* CutSorted(Piece*& list) {
  Piece* first = std::exchange(list, list->next);
  Piece* last = first;
  while (list != nullptr) {
    Piece* const piece = list;
    const bool before = AddressOf(piece) < AddressOf(first);
    if (!before && AddressOf(piece) < AddressOf(last)) break;
    list = piece->next;
    if (before) {
      piece->next = first;
      first = piece;
    } else {
      last->next = piece;
      last = piece;
    }
  }
  last->next = nullptr;
  return first;
}

// By address, in place.
Piece* Sort(Piece* list) {
  // Place i is empty, or has what 2^i calls of CutSorted returned.
  Piece* places[64] = {};
  while (list != nullptr) {
    Piece* sorted = CutSorted(list);
    Piece** place = places;
    for (; *place != nullptr; ++place) {
      sorted = Merge(std::exchange(*place, nullptr), sorted);
    }
    *place = sorted;
  }
  Piece* sorted = nullptr;
  for (Piece* place : places) sorted = Merge(place, sorted);
  return sorted;
}

}  // namespace

struct MetadataPool::Purged {
  Piece* first = nullptr;
  Piece** piece_end = &first;
  std::size_t count = 0;
  Run* runs = nullptr;
  Run** run_end = &runs;
  std::size_t run_pages = 0;
  std::size_t bytes = 0;

  void AddPieces(Address begin, Address end, std::size_t piece_bytes) {
    for (; begin != end; begin += piece_bytes) {
      auto* const piece = new (reinterpret_cast<void*>(begin)) Piece{nullptr};
      *piece_end = piece;
      piece_end = &piece->next;
      ++count;
    }
  }
  void AddRun(Address begin, std::size_t pages) {
    auto* const run = new (reinterpret_cast<void*>(begin)) Run{nullptr, pages};
    *run_end = run;
    run_end = &run->next;
    run_pages += pages;
  }
};

void MetadataPool::Place(Region::Window window) {
  const FutexLockHolder hold(lock_);
  table_.Place(window.begin, window.bytes, 0);
}

void MetadataPool::CountCall() { AddByOwner(calls_, 1); }

MetadataPool::Piece* MetadataPool::TakeOne() {
  if (free_ != nullptr || OpenPage()) {
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

std::size_t MetadataPool::PageBytes() const {
  return std::max(memory_.PageBytes(), piece_bytes_);
}

bool MetadataPool::OpenPage() {
  Run* const run = runs_;
  if (run == nullptr) return false;
  const std::size_t page_bytes = PageBytes();
  const Address page = AddressOf(run) + --run->pages * page_bytes;
  // The pieces may overwrite the run.
  if (run->pages == 0) runs_ = run->next;
  --run_pages_;
  for (Address end = page + page_bytes; end != page;) {
    end -= piece_bytes_;
    free_ = new (reinterpret_cast<void*>(end)) Piece{free_};
  }
  free_count_ += page_bytes / piece_bytes_;
  return true;
}

// All pieces of [begin, end) are free. Their links are written anew where the
// kernel refuses: nobody knows what it took before.
void MetadataPool::PurgeStretch(Address begin, Address end, Purged& purged) {
  const std::size_t page_bytes = PageBytes();
  const Address run = RoundUp<Address>(begin, page_bytes);
  const Address run_end = RoundDown<Address>(end, page_bytes);
  Address to = run + page_bytes;
  while (to < run_end && !is_forking_.load(std::memory_order_relaxed)) {
    const std::size_t bytes = std::min<std::size_t>(run_end - to, kSliceBytes);
    purge_calls_.fetch_add(1, std::memory_order_relaxed);
    if (!memory_.Purge(to, bytes).ok()) break;
    HAK_PROBE2(purge, to, bytes);
    to += bytes;
    purged.bytes += bytes;
  }
  const std::size_t pages = (to - run) / page_bytes;
  if (pages < 2) {
    purged.AddPieces(begin, end, piece_bytes_);
    return;
  }
  purged.AddPieces(begin, run, piece_bytes_);
  purged.AddRun(run, pages);
  purged.AddPieces(to, end, piece_bytes_);
}

bool MetadataPool::IsWorthPurging(bool only_many) {
  const std::size_t bytes = free_count_ * piece_bytes_;
  left_count_ = std::min(left_count_, free_count_);
  if (!only_many) return bytes >= 2 * PageBytes();
  return bytes >= kManyBytes && free_count_ > left_count_ + left_count_ / 2;
}

// By trying: a signal handler may come here that interrupted a Purge, or forks.
std::size_t MetadataPool::Purge(bool only_many) {
  FutexLock::Identify();
  // Threads that purge in turn would keep a fork waiting for ever: a thread
  // that is there already is sooner than one that has to wake.
  if (is_forking_.load(std::memory_order_relaxed) || !purge_lock_.TryLock()) {
    return 0;
  }
  const std::size_t bytes = PurgeAlone(only_many);
  purge_lock_.Unlock();
  return bytes;
}

std::size_t MetadataPool::PurgeAlone(bool only_many) {
  Piece* list = nullptr;
  {
    const FutexLockHolder hold(lock_);
    if (!IsWorthPurging(only_many)) return 0;
    list = std::exchange(free_, nullptr);
    free_count_ = 0;
  }
  Purged purged;
  for (list = Sort(list); list != nullptr;) {
    const Address begin = AddressOf(list);
    Address end = begin;
    for (; AddressOf(list) == end; end += piece_bytes_) list = list->next;
    PurgeStretch(begin, end, purged);
  }
  const FutexLockHolder hold(lock_);
  *purged.piece_end = free_;
  free_ = purged.first;
  free_count_ += purged.count;
  *purged.run_end = runs_;
  runs_ = purged.runs;
  run_pages_ += purged.run_pages;
  // Where a fork has ended it, there is more to be had.
  if (!is_forking_.load(std::memory_order_relaxed)) left_count_ = free_count_;
  return purged.bytes;
}

void MetadataPool::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  std::size_t count = 0;
  for (const Piece* piece = free_; piece != nullptr; piece = piece->next) {
    const Address address = AddressOf(piece);
    HAK_CHECK_LT(address - table_.start(), made_ * piece_bytes_);
    HAK_CHECK(IsAligned<Address>(address, piece_bytes_));
    ++count;
  }
  HAK_CHECK_EQ(count, free_count_);
  const std::size_t page_bytes = PageBytes();
  std::size_t pages = 0;
  for (const Run* run = runs_; run != nullptr; run = run->next) {
    HAK_CHECK(IsAligned<Address>(AddressOf(run), page_bytes));
    HAK_CHECK_NE(run->pages, 0U);
    HAK_CHECK_LE(AddressOf(run) - table_.start() + run->pages * page_bytes,
                 made_ * piece_bytes_);
    pages += run->pages;
  }
  HAK_CHECK_EQ(pages, run_pages_);
  HAK_CHECK_LE(count + pages * (page_bytes / piece_bytes_), made_);  // D1
}

void MetadataPool::CheckNoneIsLost(std::size_t in_use) {
  if (forked_) return;
  const FutexLockHolder hold(lock_);
  const std::size_t in_runs = run_pages_ * (PageBytes() / piece_bytes_);
  HAK_CHECK_EQ(in_use + free_count_ + in_runs, made_);  // D1
}

}  // namespace hakmem
