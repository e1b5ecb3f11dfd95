#include "allocator/core/misuse_in_heap.h"

#include "allocator/reports/block_report.h"
#include "allocator/reports/fatal.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

void ReportUnsoundBlock(const UnsoundBlock& found, const char* variant) {
  const auto report_of = [&](unsigned code, HeapId owner) -> BlockReport {
    const auto size_class = static_cast<SizeClass>(code - 1);
    return {.pointer = found.block,
            .use = PointerUse::kFree,
            .variant = variant,
            .route = IsTiny(size_class) ? Route::kTiny : Route::kPool,
            .block_bytes = ClassBytes(size_class),
            .owner_heap = owner,
            .caller_heap = found.heap};
  };
  const unsigned its_code = found.size_class + 1U;
  if (!found.was_queued) {
    FatalFreedBlock(report_of(its_code, found.heap), "free");
    return;
  }
  const auto address = reinterpret_cast<Address>(found.block);
  const UnitRecord record = found.zone->unit_record(found.zone->UnitOf(address))
                                .load(std::memory_order_relaxed);
  const HeaderByte live = UnitLiveHeader(record);
  const unsigned code = HeaderCode(found.found);
  // Its unit may be nobody's by now, or another class's: then the other free
  // came first, and its whole slab was free.
  if (UnitOwner(record) == 0 || found.found == kNoBlock ||
      HeaderCode(live) != its_code) {
    const bool known = code >= 1 && code <= kClassCount;
    const BlockReport report = report_of(known ? code : 1U, /*owner=*/0);
    return known ? FatalFreedBlock(report, "released") : FatalNotABlock(report);
  }
  const BlockReport report = report_of(its_code, UnitOwner(record));
  if (code == HeaderCode(live) &&
      HeaderState(found.found) != BlockState::kQueued) {
    FatalFreedBlock(report, "queued");
    return;
  }
  FatalDamagedHeader(report, found.found,
                     MakeHeader(BlockState::kQueued, HeaderCode(live)));
}

}  // namespace hakmem
