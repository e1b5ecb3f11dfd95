// The parts of ACE, which it knows by reference: who calls ACE need not read
// them.
//
// Owns: what ACE does but for the region and the state. Called by: who has an
// ACE, and ACE, under its lock. Thread-safety: none of its own, but for what
// each part says.
#ifndef HAKMEM_ALLOCATOR_ACE_ACE_PARTS_H_
#define HAKMEM_ALLOCATOR_ACE_ACE_PARTS_H_

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/ace/empty_pool.h"
#include "allocator/ace/huge_pool.h"
#include "allocator/ace/range_pool.h"
#include "allocator/ace/run_store.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/statistics/statistic.h"

namespace hakmem {

// The lists of both zones.
struct ZoneRanges {
  RangeLists fine;
  RangeLists coarse;
};
// Room for them, where a variant has any.
template <bool kSeparateClasses>
struct RoomForRanges {
  constexpr ZoneRanges* get() { return &ranges; }
  ZoneRanges ranges;
};
template <>
struct RoomForRanges<false> {
  static constexpr ZoneRanges* get() { return nullptr; }
};

struct AceParts {
  // `ranges`: in variants that separate classes. They are ACE's alone.
  constexpr AceParts(Ace& ace, ZoneRanges* ranges)
      : stores{RunStore(ace.region_.fine(), ace.state_,
                        ranges == nullptr ? nullptr : &ranges->fine),
               RunStore(ace.region_.coarse(), ace.state_,
                        ranges == nullptr ? nullptr : &ranges->coarse)},
        pages(ace.state_.memory),
        huge(ace.state_.lock, pages, ace.state_.memory) {}
  AceParts(const AceParts&) = delete;
  AceParts& operator=(const AceParts&) = delete;

  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    for (const RunStore& store : stores) store.VisitCounters(visit);
    huge.VisitCounters(visit);
    empty.VisitCounters(visit);
    visit(Statistic::kPurgeCalls, pages.purge_calls_word());
  }

  RunStore stores[2];  // by zone: fine, coarse
  TouchedPages pages;
  HugePool huge;
  EmptyPool empty;
};

constexpr Ace::Ace(VirtualMemory& memory, AceParts& parts)
    : state_{memory}, parts_(parts), pages_(parts.pages), huge_(parts.huge) {}

inline std::int64_t Ace::ExcessUnits() const {
  return state_.retention.ExcessUnits(
      parts_.stores[kFine].pool().dirty().purgeable() +
      parts_.stores[kCoarse].pool().dirty().purgeable());
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ACE_PARTS_H_
