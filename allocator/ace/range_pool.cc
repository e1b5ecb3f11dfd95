#include "allocator/ace/range_pool.h"

#include <algorithm>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

UnitIndex RangePool::Pop(List& list) {
  if (list == 0) return kNoUnit;
  const UnitIndex first = list - 1;
  list = NextOf(first);
  return first;
}

void RangePool::Push(List& list, UnitIndex first) {
  NextOf(first) = list;
  list = first + 1;
}

// The alignment that an address happens to have would not do: of neighbours,
// every second one would be on another list, and SuperSlabs would be used by
// halves.
unsigned RangePool::AlignmentOf(UnitIndex first) const {
  return zone_.super_slab(FrameOfUnit(first))
      .range_alignment_shifts[UnitInFrame(first)];
}

void RangePool::NoteCarved(RangeKind kind, UnitIndex first) {
  if (kind.is_slab()) return;
  const auto shift =
      static_cast<unsigned>(std::countr_zero(kind.alignment_units));
  HAK_CHECK_LT(shift, kAlignments);
  zone_.super_slab(FrameOfUnit(first))
      .range_alignment_shifts[UnitInFrame(first)] =
      static_cast<std::uint8_t>(shift);
}

// Whether any of its units is being given back, or is unmapped.
RangePool::Hindrance RangePool::HindranceOf(UnitIndex first,
                                            std::uint32_t units) const {
  bool purging = false;
  bool unmapped = false;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    purging |= (zone_.super_slab(frame).purging_units & mask) != 0;
    unmapped |= (zone_.UnmappedUnits(frame) & mask) != 0;
  });
  return purging    ? Hindrance::kPurging
         : unmapped ? Hindrance::kUnmapped
                    : Hindrance::kNone;
}

// Those that are passed keep their places.
UnitIndex RangePool::PopUsable(List& list, std::uint32_t units) {
  List* link = &list;
  List* unmapped = nullptr;
  for (int passed = 0; *link != 0 && passed < kMostPassed; ++passed) {
    const UnitIndex first = *link - 1;
    const Hindrance hindrance = HindranceOf(first, units);
    if (hindrance == Hindrance::kNone) return Pop(*link);
    if (hindrance == Hindrance::kUnmapped && unmapped == nullptr) {
      unmapped = link;
    }
    link = &NextOf(first);
  }
  return unmapped == nullptr ? kNoUnit : Pop(*unmapped);
}

void RangePool::GatherIn(List& list, std::uint32_t units, unsigned& looks) {
  for (List* link = &list; *link != 0 && looks != 0; --looks) {
    const UnitIndex first = *link - 1;
    if (link == &list || HindranceOf(first, units) != Hindrance::kNone) {
      link = &NextOf(first);
    } else {
      Push(list, Pop(*link));
    }
  }
}

void RangePool::Gather(RangeKind kind) {
  RangeLists& lists = ListsOf(kind.partition);
  unsigned looks = kMostGathered;
  if (kind.is_slab()) {
    return GatherIn(lists.slabs[kind.size_class], kind.units, looks);
  }
  for (List& list : lists.spans[LengthClassOf(kind.units)]) {
    GatherIn(list, kind.units, looks);
  }
}

UnitIndex RangePool::Take(RangeKind& kind, std::uint32_t most_units) {
  if (kind.is_slab()) {
    return PopUsable(ListsOf(kind.partition).slabs[kind.size_class],
                     kind.units);
  }
  for (RangeKind longer = kind; longer.units <= most_units;
       longer.units = RangeUnits(longer.units + 1)) {
    const UnitIndex first = TakeSpan(longer);
    if (first == kNoUnit) continue;
    kind = longer;
    return first;
  }
  return kNoUnit;
}

// What an alignment leaves out stays nobody's: addresses.
UnitIndex RangePool::TakeRest(RangeKind kind) {
  RangeLists& lists = ListsOf(kind.partition);
  const UnitIndex first = RoundUp(lists.rest_first, kind.alignment_units);
  if (kind.alignment_units > kUnitsPerSuperSlab ||
      first + kind.units > lists.rest_end) {
    return kNoUnit;
  }
  lists.rest_first = first + kind.units;
  NoteCarved(kind, first);
  return first;
}

void RangePool::Give(RangeKind kind, UnitIndex first, std::uint32_t units) {
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t) {
    zone_.super_slab(frame).partition = kind.partition;
  });
  NoteCarved(kind, first);
  RangeLists& lists = ListsOf(kind.partition);
  const UnitIndex rest = first + kind.units;
  const UnitIndex end = first + units;
  if (end - rest > lists.rest_end - lists.rest_first) {
    lists.rest_first = rest;
    lists.rest_end = end;
  }
}

// Bit per alignment that will do: its list is not empty.
unsigned RangePool::AlignmentsFor(RangeKind kind) const {
  const unsigned non_empty =
      ListsOf(kind.partition).non_empty[LengthClassOf(kind.units)];
  return non_empty & ~(kind.alignment_units - 1);
}

bool RangePool::Has(RangeKind kind) const {
  return kind.is_slab() ? ListsOf(kind.partition).slabs[kind.size_class] != 0
                        : AlignmentsFor(kind) != 0;
}

UnitIndex RangePool::TakeSpan(RangeKind kind) {
  RangeLists& of = ListsOf(kind.partition);
  const unsigned length = LengthClassOf(kind.units);
  for (unsigned lists = AlignmentsFor(kind); lists != 0; lists &= lists - 1) {
    const auto alignment = static_cast<unsigned>(std::countr_zero(lists));
    List& list = of.spans[length][alignment];
    const UnitIndex first = PopUsable(list, kind.units);
    if (list == 0) {
      of.non_empty[length] =
          static_cast<std::uint16_t>(of.non_empty[length] & ~(1U << alignment));
    }
    if (first != kNoUnit) return first;
  }
  return kNoUnit;
}

void RangePool::Put(RangeKind kind, UnitIndex first) {
  RangeLists& lists = ListsAt(first);
  if (kind.is_slab()) return Push(lists.slabs[kind.size_class], first);
  const unsigned length = LengthClassOf(kind.units);
  HAK_CHECK_EQ(LengthClassUnits(length), kind.units);
  const unsigned alignment = AlignmentOf(first);
  Push(lists.spans[length][alignment], first);
  lists.non_empty[length] =
      static_cast<std::uint16_t>(lists.non_empty[length] | 1U << alignment);
}

std::uint32_t RangePool::LongestUnits() const {
  std::uint32_t units = 0;
  ForEachLists([&units](const RangeLists& lists) {
    for (unsigned length = 0; length < kLengthClasses; ++length) {
      if (lists.non_empty[length] != 0) {
        units = std::max(units, LengthClassUnits(length));
      }
    }
    for (unsigned i = 0; i < kClassCount; ++i) {
      if (lists.slabs[i] != 0)
        units = std::max(units, kClassLayouts[i].slab_units);
    }
  });
  return units;
}

void RangePool::CheckRange(UnitIndex first, std::uint32_t units) const {
  for (UnitIndex unit = first; unit < first + units; ++unit) {
    HAK_CHECK(
        (zone_.super_slab(FrameOfUnit(unit)).kept_units >> UnitInFrame(unit) &
         1) != 0);  // RP1
  }
}

bool RangePool::IsListed(UnitIndex first, std::uint32_t units) const {
  List list = ListsAt(first).spans[LengthClassOf(units)][AlignmentOf(first)];
  while (list != 0 && list != first + 1) {
    list = NextOf(list - 1);
  }
  return list != 0;
}

void RangePool::CheckList(const RangeLists& lists, List list,
                          std::uint32_t units) const {
  for (; list != 0; list = NextOf(list - 1)) {
    CheckRange(list - 1, units);
    HAK_CHECK_EQ(&ListsAt(list - 1), &lists);  // RP3
  }
}

void RangePool::CheckInvariants() const {
  ForEachLists([this](const RangeLists& lists) {
    for (unsigned i = 0; i < kClassCount; ++i) {
      CheckList(lists, lists.slabs[i], kClassLayouts[i].slab_units);
    }
    for (unsigned length = 0; length < kLengthClasses; ++length) {
      for (unsigned alignment = 0; alignment < kAlignments; ++alignment) {
        const List list = lists.spans[length][alignment];
        HAK_CHECK_EQ(list != 0,
                     (lists.non_empty[length] >> alignment & 1) != 0);
        if (list != 0) {  // RP2
          HAK_CHECK_EQ(AlignmentOf(list - 1), alignment);
          HAK_CHECK(IsAligned<Address>(zone_.UnitAddress(list - 1),
                                       kUnitBytes << alignment));
        }
        CheckList(lists, list, LengthClassUnits(length));
      }
    }
    if (lists.rest_first == lists.rest_end) return;
    CheckRange(lists.rest_first, lists.rest_end - lists.rest_first);
    HAK_CHECK_EQ(&ListsAt(lists.rest_first), &lists);  // RP3
  });
}

}  // namespace hakmem
