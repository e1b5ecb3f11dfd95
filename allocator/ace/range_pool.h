// The free ranges of one zone, each for the class that it belongs to: a slab of
// one size class, or a span of one length.
//
// Owns: which ranges are free (their units are kept: unit_pool.h). Called by:
// Ace, under its lock, in variants that separate classes.
// Thread-safety: none of its own.
//
// A range is carved once, from units that nothing has used, and is its class's
// for ever; what is unmapped of it under pressure is mapped again for it. So a
// pointer into freed memory can only meet a block of its own class again, and
// an inaccessible page at a range's end is set up once.
//
// Lengths of spans are rounded up to four classes per doubling, so that ranges
// find users. Beyond 16 units one unit is added, for round sizes and their
// guard. Only addresses are lost, as nobody touches the rest.
//
// Invariants:
//   RP1: the units of each listed range are kept.
//   RP2: a span's range is on the list of its length and of the alignment that
//       it was carved for, which its address has.
//   RP3: a listed range, and a partition's rest, lie in SuperSlabs of theirs.
#ifndef HAKMEM_ALLOCATOR_ACE_RANGE_POOL_H_
#define HAKMEM_ALLOCATOR_ACE_RANGE_POOL_H_

#include <bit>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/slab/size_class.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

namespace internal {

// Four lengths per doubling.
constexpr unsigned kRoundLengths = 45;
constexpr unsigned RoundLengthOf(std::uint32_t units) {
  if (units <= 4) return units - 1;
  const auto shift = static_cast<unsigned>(std::bit_width(units - 1)) - 3;
  return 4 * shift + ((units - 1) >> shift);
}
constexpr std::uint32_t RoundLengthUnits(unsigned length) {
  if (length < 4) return length + 1;
  return (length % 4 + 5) << ((length / 4 - 1) % 32);
}

}  // namespace internal

// Units are 1 or more.
constexpr unsigned LengthClassOf(std::uint32_t units) {
  constexpr std::uint32_t kShort = 16;
  if (units > kShort) {
    const unsigned below = internal::RoundLengthOf(units - 1);
    if (internal::RoundLengthUnits(below) == units - 1) {
      return internal::kRoundLengths + below;
    }
  }
  return internal::RoundLengthOf(units);
}
constexpr std::uint32_t LengthClassUnits(unsigned length_class) {
  return length_class < internal::kRoundLengths
             ? internal::RoundLengthUnits(length_class)
             : internal::RoundLengthUnits(length_class -
                                          internal::kRoundLengths) +
                   1;
}
// The length of the ranges that serve spans of `units`.
constexpr std::uint32_t RangeUnits(std::uint32_t units) {
  return LengthClassUnits(LengthClassOf(units));
}

// Which ranges serve a grant: those of a size class's slabs, or of spans of one
// length. Alignments are powers of two.
struct RangeKind {
  std::uint32_t units;
  std::uint32_t alignment_units = 1;
  SizeClass size_class = kClassCount;  // none: a span's
  Partition partition = 0;

  bool is_slab() const { return size_class < kClassCount; }
};
constexpr RangeKind SlabRange(SizeClass size_class, Partition partition = 0) {
  const std::uint32_t units = kClassLayouts[size_class].slab_units;
  return {units, units, size_class, partition};
}

class RangePool;
class RestingSpans;
class RunStore;
struct RunGrant;

// What a RunStore does where it has ranges. By pointers from the lists, so that
// a library without these has none of the code.
struct RangeCalls {
  RunGrant (RunStore::*take)(RangeKind& kind);
  void (RunStore::*put)(RangeKind kind, UnitIndex first, bool dirty);
  std::uint32_t (RangePool::*longest_units)() const;
  void (RangePool::*check)() const;
  void (RestingSpans::*wake_all)();
  void (RestingSpans::*check_resting)() const;

  static const RangeCalls all_;
};

// The lists of a RangePool: apart, because most variants have none, and a
// library's file would have room for them.
struct RangeLists {
  static constexpr unsigned kLengthClasses = 2 * internal::kRoundLengths;
  // 1 unit to 4,096 and more: what spans can be aligned to.
  static constexpr unsigned kAlignments = 13;

  // The first unit of the first range, plus 1; 0: the list is empty.
  using List = std::uint32_t;

  List slabs[kClassCount] = {};
  List spans[kLengthClasses][kAlignments] = {};
  // Bit per alignment: its list is not empty.
  std::uint16_t non_empty[kLengthClasses] = {};
  // What is left of whole SuperSlabs that a partition but the first has taken:
  // kept units of no class, from which its ranges are carved.
  UnitIndex rest_first = 0;
  UnitIndex rest_end = 0;
  const RangeCalls* calls = &RangeCalls::all_;  // in the first partition's
};

class RangePool {
 public:
  // The longest span, and a guard page after it.
  static constexpr std::uint32_t kMostUnits = 5 * 1024;
  // So many ranges are looked at in one call.
  static constexpr unsigned kMostGathered = 4'096;

  // Null `lists`: there are no ranges, and none is asked for or put.
  constexpr RangePool(Zone& zone, RangeLists* lists)
      : zone_(zone), lists_(lists) {}
  RangePool(const RangePool&) = delete;
  RangePool& operator=(const RangePool&) = delete;

  // Null: there are no ranges.
  const RangeCalls* calls() const {
    return lists_ == nullptr ? nullptr : lists_->calls;
  }
  // Where the lists of partitions but the first are, from now on.
  void SetTyped(RangeLists* typed) { typed_ = typed; }
  bool has_typed() const { return typed_ != nullptr; }
  // A range for a partition but the first from the rest of its SuperSlabs;
  // kNoUnit: that is too short.
  UnitIndex TakeRest(RangeKind kind);
  // Whole SuperSlabs, whose units are kept, are the partition's: a range at
  // their start, and the rest.
  void Give(RangeKind kind, UnitIndex first, std::uint32_t units);

  // The range that was freed last and is mapped, as far as one looks, else one
  // that is not; those that are being purged cannot be had. kNoUnit: there is
  // none, or, if Has, the first kMostPassed of each list are being purged. A
  // span's units are a length class's; a range of up to `most_units`, at most
  // kMostUnits, serves it, too, and is what `kind` is then.
  UnitIndex Take(RangeKind& kind, std::uint32_t most_units);
  bool Has(RangeKind kind) const;
  void Put(RangeKind kind, UnitIndex first);
  // Frames were mapped again: what can be had is to be found first, of the
  // first kMostGathered.
  HAK_COLD void Gather(RangeKind kind);
  // A range was just carved from units that nothing has used.
  void NoteCarved(RangeKind kind, UnitIndex first);

  // The longest free range.
  std::uint32_t LongestUnits() const;

  HAK_COLD void CheckInvariants() const;
  // Checks a free range, listed or not.
  HAK_COLD void CheckRange(UnitIndex first, std::uint32_t units) const;
  // Whether a span's range is on a list; looks through the one that it must be
  // on.
  bool IsListed(UnitIndex first, std::uint32_t units) const;

 private:
  static constexpr unsigned kLengthClasses = RangeLists::kLengthClasses;
  static constexpr unsigned kAlignments = RangeLists::kAlignments;
  static_assert(LengthClassOf(kMostUnits) + 1 == internal::kRoundLengths);

  // So many are looked at for the sake of one grant.
  static constexpr int kMostPassed = 32;

  using List = RangeLists::List;

  List& NextOf(UnitIndex first) const {
    return zone_.super_slab(FrameOfUnit(first)).next_ranges[UnitInFrame(first)];
  }
  RangeLists& ListsOf(Partition partition) const {
    return partition == 0 ? *lists_ : typed_[partition - 1];
  }
  RangeLists& ListsAt(UnitIndex first) const {
    return ListsOf(zone_.super_slab(FrameOfUnit(first)).partition);
  }
  // Calls `use(lists)` for each partition's.
  template <typename Use>
  void ForEachLists(const Use& use) const {
    if (lists_ == nullptr) return;
    use(*lists_);
    for (unsigned i = 1; typed_ != nullptr && i < kMostPartitions; ++i) {
      use(ListsOf(static_cast<Partition>(i)));
    }
  }
  UnitIndex TakeSpan(RangeKind kind);
  unsigned AlignmentsFor(RangeKind kind) const;
  UnitIndex Pop(List& list);
  UnitIndex PopUsable(List& list, std::uint32_t units);
  void GatherIn(List& list, std::uint32_t units, unsigned& looks);
  enum class Hindrance : std::uint8_t { kNone, kPurging, kUnmapped };
  Hindrance HindranceOf(UnitIndex first, std::uint32_t units) const;
  void Push(List& list, UnitIndex first);
  unsigned AlignmentOf(UnitIndex first) const;
  void CheckList(const RangeLists& lists, List list, std::uint32_t units) const;

  Zone& zone_;
  RangeLists* const lists_;
  RangeLists* typed_ = nullptr;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_RANGE_POOL_H_
