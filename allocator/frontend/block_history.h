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

// Calls that the hooks of a process make for it.
struct HistoryHooks {
  // The options have been read.
  void (*enable)();
  void (*finish)();  // HAKMEM_LEAKS
  void (*prepare_fork)();
  void (*parent_after_fork)();
  void (*child_after_fork)();
  std::size_t (*metadata_bytes)();
};
// NOLINTNEXTLINE(readability-identifier-naming): constexpr where it is defined
extern const HistoryHooks kHistoryHooks;

namespace internal {
extern StackDepot g_stacks;
extern BlockRecords g_records;
}  // namespace internal

// leak_report.cc: lists what is live, as HAKMEM_LEAKS asks.
void ReportLeaks(const char* value);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_BLOCK_HISTORY_H_
