// ThreadHeap: the checks of its invariants. Included by heap_registry.h alone.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_CHECK_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_CHECK_H_

#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/heap/thread_heap_class.h"
#include "allocator/process/clock.h"

namespace hakmem {

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckMagazine(SizeClass size_class,
                                        MagazineTop top) const {
  const Zone& zone = ZoneOf(size_class);
  for (std::uint32_t i = 0; i < MagazineCount(top); ++i) {
    const auto block = reinterpret_cast<Address>(MagazineBlocks(top)[i]);
    HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                 MakeHeader(BlockState::kFree, size_class + 1U));  // T2
    const UnitRecord record =
        zone.unit_record(zone.UnitOf(block)).load(std::memory_order_relaxed);
    HAK_CHECK_EQ(UnitLiveHeader(record),
                 MakeHeader(BlockState::kLive, size_class + 1U));  // T2
    if constexpr (!kReusesForeign<kConfig>) {
      HAK_CHECK_EQ(UnitOwner(record), id());  // T2
    }
  }
}

// Checks what the owner touches without the lock.
template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckLoaded(SizeClass size_class) {
  const ClassCache& cache = Cache(size_class);
  HAK_CHECK_LE(MagazineCount(cache.top), MagazineCapacity(size_class));
  HAK_CHECK_GE(cache.full, static_cast<std::uint32_t>(cache.top));  // T1
  HAK_CHECK_LE(cache.full,                                          // T1
               cache.top == 0
                   ? 0U
                   : static_cast<std::uint32_t>(MagazineStart(cache.top)) +
                         MagazineCapacity(size_class) *
                             static_cast<std::uint32_t>(kMagazineSlotBytes));
  CheckMagazine(size_class, cache.top);
  CheckOutbox(size_class);
  if constexpr (kConfig.delay_reuse) CheckResting(size_class);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckBehind(SizeClass size_class) {
  CheckMagazine(size_class, depots_[size_class].previous);
  const Depot& depot = depots_[size_class];
  std::uint32_t count = 0;
  for (MagazineTop top = depot.magazines; top != 0; top = MagazineLink(top)) {
    HAK_CHECK_GT(MagazineCount(top), 0U);  // T3
    CheckMagazine(size_class, top);
    ++count;
  }
  HAK_CHECK_EQ(count, depot.count);  // T3
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckOutbox(SizeClass size_class) const {
  const Outbox& outbox = outboxes_[size_class];
  HAK_CHECK_EQ(outbox_classes_ >> size_class & 1,  // T4
               static_cast<unsigned>(outbox.top != 0));
  HAK_CHECK_GE(outbox.full, static_cast<std::uint32_t>(outbox.top));  // T4
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckLocked(bool with_loaded) {
  DropTorn();
  std::uint64_t depot_bytes = 0;
  std::uint32_t magazines = spares_.count();
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    if (with_loaded) CheckLoaded(size_class);
    CheckBehind(size_class);
    depot_bytes += depots_[i].count * FullMagazineBytes(size_class);
    magazines += depots_[i].count;
    if (with_loaded && Cache(size_class).top != 0) ++magazines;
    if (depots_[i].previous != 0) ++magazines;
    if (with_loaded && outboxes_[i].top != 0) ++magazines;
    if (abandoned() && (left_classes_ >> i & 1) == 0) {
      HAK_CHECK_EQ(Cache(size_class).top, 0U);  // T7
      HAK_CHECK_EQ(depots_[i].previous, 0U);    // T7
      HAK_CHECK_EQ(depots_[i].count, 0U);       // T7
    }
  }
  HAK_CHECK_EQ(depot_bytes, depot_bytes_);                            // T3
  HAK_CHECK_LE(depot_bytes + spares_.bytes(), system_->depot_bytes);  // T3
  spares_.CheckInvariants();
  if (with_loaded && !was_torn_) HAK_CHECK_EQ(magazines, spares_.held());  // T6
  if (with_loaded) {
    spans_.CheckInvariants(system_->ace.region().coarse(),
                           system_->kept_span_units);
  }
  slabs_.CheckInvariants();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::AddPieces(HeapPieces& pieces) {
  const GatedLockHolder hold(lock_);
  pieces.magazines += spares_.held();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckInvariants() {
  const GatedLockHolder hold(lock_);
  CheckLocked(/*with_loaded=*/true);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckWhileRunning(bool mine) {
  const GatedLockHolder hold(lock_);
  CheckLocked(/*with_loaded=*/mine || abandoned());
}

// Checks what was touched at once; all of heap and ACE after every so many slow
// paths, unless the last time took longer than has passed since: so checks of
// the whole never take more than half of a thread's time, however large it is.
template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckAfterSlowPath(SizeClass touched) {
  {
    const GatedLockHolder hold(lock_);
    if (touched != kNoClass) {
      CheckLoaded(touched);
      CheckBehind(touched);
      slabs_.CheckRecent(touched);
    }
  }
  if (++since_check_ < kCheckInterval) return;
  const std::uint64_t begin_ns = MonotonicNs();
  if (begin_ns < next_check_ns_) return;
  since_check_ = 0;
  CheckInvariants();
  system_->ace.CheckInvariants();
  const std::uint64_t end_ns = MonotonicNs();
  next_check_ns_ = end_ns + (end_ns - begin_ns);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_CHECK_H_
