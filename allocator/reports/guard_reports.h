// Sentences about guarded blocks that others have no use for: of accesses that
// faulted, and of damage beside a block. Common ones are said by fatal.h and
// bounds_reports.h, of a BlockReport that names the guarded block.
//
// Owns: the sentences. Called by: core's GuardedBlocks. Thread-safety: any
// thread; never allocates. ReportGuardFault runs in a signal handler and
// returns; the other does what HAKMEM_ON_MISUSE says, as those of fatal.h.
#ifndef HAKMEM_ALLOCATOR_REPORTS_GUARD_REPORTS_H_
#define HAKMEM_ALLOCATOR_REPORTS_GUARD_REPORTS_H_

#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/process/fault_hook.h"
#include "allocator/reports/block_report.h"
#include "allocator/reports/report_sources.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

// A guarded block, live or freed.
struct GuardedBlockFacts {
  Address start = 0;
  std::size_t size_bytes = 0;
  bool freed = false;
  BlockHistory history;
};

// An access that faulted; `report.guarded` is null where no block has ever been
// near, and of the rest the variant alone is read.
//   use after free of 0xP (16 bytes into a guarded block of 100 bytes, freed)
//   use after free of 0xP (3 bytes past the end of a guarded block of 100
//   bytes, freed)
//   overflow of 0xP (3 bytes past the end of a guarded block of 100 bytes)
//   underflow of 0xP (1 byte before the start of a guarded block of 100 bytes)
//   wild access to 0xP (among the guarded blocks, but to none)
HAK_COLD void ReportGuardFault(const Fault& fault, const BlockReport& report,
                               const CallStack& access);

// Damage that a free found behind or before the block:
//   overflow of 0xP (3 bytes past the end of a guarded block of 100 bytes,
//   found by free)
HAK_COLD void ReportGuardDamage(const BlockReport& call, Address damage);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_GUARD_REPORTS_H_
