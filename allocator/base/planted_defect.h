// Known defects that the builds of the fuzz targets contain, switched off: each
// fuzzer must find its own when it is switched on (docs/fuzzing.md).
//
// Owns: which defect is switched on. Called by: every layer; tools; fuzz.
// Thread-safety: set once, before the allocator under test exists.
//
// Invariants:
//   PD1: without the macro PlantedDefect is the constant false, so that a
//       product contains none of it.
#ifndef HAKMEM_ALLOCATOR_BASE_PLANTED_DEFECT_H_
#define HAKMEM_ALLOCATOR_BASE_PLANTED_DEFECT_H_

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace hakmem {

enum class Defect : std::uint8_t {
  kNone,
  // A span that was freed counts as zero.
  kFreedSpanKnownZero,
  // The class of an aligned size is that of one byte less.
  kClassOneByteShort,
  // An address within a span's first granule counts as its start.
  kMisalignedSpanIsLive,
  // A report takes the unit behind a span for part of it.
  kSpanOneUnitLong,
  // A thread that exits keeps its outboxes.
  kOutboxesKeptAtExit,
  // Blocks are filed into another heap's slabs without its lock.
  kFiledWithoutLock,
  // A SuperSlab that becomes wholly free stays on its old list, too.
  kFrameOnTwoLists,
  // An option may exceed its maximum by one.
  kOptionMaximumPlusOne,
  // A limit that is used up to the last byte counts as exceeded.
  kLimitReachedIsExceeded,
  // A report in HTML has the trace's '<' as they are.
  kMarkupIsKept,
  // A text of a call trace may be a byte longer than what is left.
  kTextOneByteLong,
};

inline constexpr std::string_view kDefectNames[] = {
    "none",
    "freed_span_known_zero",
    "class_one_byte_short",
    "misaligned_span_is_live",
    "span_one_unit_long",
    "outboxes_kept_at_exit",
    "filed_without_lock",
    "frame_on_two_lists",
    "option_maximum_plus_one",
    "limit_reached_is_exceeded",
    "markup_is_kept",
    "text_one_byte_long",
};

#if defined(HAKMEM_FUZZ_DEFECTS)

inline constexpr bool kDefectsCompiledIn = true;
inline constinit Defect planted_defect = Defect::kNone;
inline void PlantDefect(Defect defect) { planted_defect = defect; }
// Not instrumented: the schedules of fuzz/baton.h count the allocator's loads.
__attribute__((noinline, no_sanitize("coverage"))) inline bool IsPlanted(
    Defect defect) {
  return planted_defect == defect;
}
// Not to initialise a const variable with, which is done at compile time where
// that is possible, and then without defects.
constexpr bool PlantedDefect(Defect defect) {
  return !std::is_constant_evaluated() && IsPlanted(defect);
}

#else

inline constexpr bool kDefectsCompiledIn = false;
inline void PlantDefect(Defect /*defect*/) {}
constexpr bool PlantedDefect(Defect /*defect*/) { return false; }

#endif

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_PLANTED_DEFECT_H_
