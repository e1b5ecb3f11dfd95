// Reports about guarded blocks: what happened, and the stacks of the access or
// call, of the block's allocation and of its free.
//
// Owns: the text. Called by: core's GuardedBlocks. Thread-safety: any thread;
// never allocates. ReportGuardFault runs in a signal handler and returns; the
// others, of calls, do what HAKMEM_ON_MISUSE says, as those of fatal.h.
//
// Each begins with a sentence `hakmem: fatal: …`, or `hakmem: misuse: …` if the
// program is to go on; then repeated ones are counted, and few of them
// reported. Addresses of code are printed
// as `MODULE+0xOFFSET`, as addr2line and gdb want them.
#ifndef HAKMEM_ALLOCATOR_DIAG_GUARD_REPORTS_H_
#define HAKMEM_ALLOCATOR_DIAG_GUARD_REPORTS_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/block_kind.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/diag/block_report.h"
#include "allocator/platform/call_stack.h"
#include "allocator/platform/fault_hook.h"

namespace hakmem {

// A guarded block, live or freed.
struct GuardedBlockFacts {
  Address start = 0;
  std::size_t size_bytes = 0;
  bool freed = false;
  int allocated_by = 0;  // threads
  int freed_by = 0;
  const CallStack* allocation = nullptr;
  const CallStack* free = nullptr;
};

// An access that faulted; `block` is null where none has ever been near.
//   use after free of 0xP (16 bytes into a guarded block of 100 bytes, freed)
//   use after free of 0xP (3 bytes past the end of a guarded block of 100
//   bytes, freed)
//   overflow of 0xP (3 bytes past the end of a guarded block of 100 bytes)
//   underflow of 0xP (1 byte before the start of a guarded block of 100 bytes)
//   wild access to 0xP (among the guarded blocks, but to none)
HAK_COLD void ReportGuardFault(const Fault& fault,
                               const GuardedBlockFacts* block,
                               const CallStack& access, const char* variant);

// What a free found behind or before the block:
//   overflow of 0xP (3 bytes past the end of a guarded block of 100 bytes,
//   found by free)
HAK_COLD void ReportGuardDamage(const BlockReport& call,
                                const GuardedBlockFacts& block, Address damage,
                                const CallStack& stack);

//   double free of 0xP (guarded block of 100 bytes, state free)
//   realloc of freed block 0xP (guarded block of 100 bytes, state free)
HAK_COLD void ReportGuardFreed(const BlockReport& call,
                               const GuardedBlockFacts& block,
                               const CallStack& stack);

//   invalid free of 0xP (interior pointer: 16 bytes into the live block 0xS,
//   guarded block of 100 bytes)
HAK_COLD void ReportGuardInterior(const BlockReport& call,
                                  const GuardedBlockFacts& block,
                                  const CallStack& stack);

//   invalid free of 0xP (inside hakmem's region, but not a block)
// `block`: the nearest, or null.
HAK_COLD void ReportGuardNoBlock(const BlockReport& call,
                                 const GuardedBlockFacts* block,
                                 const CallStack& stack);

//   wrong-size free of 0xP (given 90 bytes, guarded block of 100 bytes)
HAK_COLD void ReportGuardWrongSize(const BlockReport& call,
                                   const GuardedBlockFacts& block,
                                   std::size_t given_bytes,
                                   const CallStack& stack);

//   mismatched free of 0xP (allocated by new[], freed by delete, guarded block
//   of 100 bytes)
HAK_COLD void ReportGuardMismatch(const BlockReport& call,
                                  const GuardedBlockFacts& block,
                                  BlockKind allocated_by, BlockKind freed_by,
                                  const CallStack& stack);

//   wrong-alignment free of 0xP (given alignment 4096, guarded block of 100
//   bytes)
HAK_COLD void ReportGuardWrongAlignment(const BlockReport& call,
                                        const GuardedBlockFacts& block,
                                        std::size_t given_alignment,
                                        const CallStack& stack);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_DIAG_GUARD_REPORTS_H_
