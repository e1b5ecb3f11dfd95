// The history of blocks in a variant that keeps it (Config::record_stacks):
// where each was allocated, and where it was freed last.
//
// Owns: the process's StackDepot and BlockRecords. Called by: c_symbols.inc,
// cpp_operators.inc, the process's hooks; other variants refer to none of it.
// Thread-safety: any thread, with no lock held; nothing allocates. errno is
// left as it was.
//
// Invariants:
//   BH1: a block's free stack is that of the call that freed it: a call that
//       finds the block freed already does not change it.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_BLOCK_HISTORY_H_
#define HAKMEM_ALLOCATOR_FRONTEND_BLOCK_HISTORY_H_

#include "allocator/base/compiler.h"
#include "allocator/history/block_records.h"
#include "allocator/history/stack_depot.h"

namespace hakmem {

// `block` was just got by a call of which `frame` is the entry point's frame;
// null: it failed.
HAK_NOINLINE void RecordAllocation(const void* block, const void* frame);
// Before `block`, which may be anything, is freed.
HAK_NOINLINE void RecordFree(const void* block, const void* frame);

// For the process's hooks. The options have been read; the process ends
// (HAKMEM_LEAKS).
void EnableHistory();
void FinishHistory();
void PrepareHistoryFork();
void HistoryParentAfterFork();
void HistoryChildAfterFork();
std::size_t HistoryBytes();

namespace internal {
extern StackDepot g_stacks;
extern BlockRecords g_records;
}  // namespace internal

// leak_report.cc: lists what is live, as HAKMEM_LEAKS asks.
void ReportLeaks(const char* value);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_BLOCK_HISTORY_H_
