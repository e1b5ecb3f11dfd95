// Calls of the frontend's shared files to the one product they are linked into.
//
// Owns: nothing; the variant's file defines these, through c_symbols.inc.
// Called by: frontend alone. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_CURRENT_PRODUCT_H_
#define HAKMEM_ALLOCATOR_FRONTEND_CURRENT_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "allocator/core/call_result.h"
#include "allocator/core/heap_check.h"
#include "allocator/core/live_count.h"
#include "allocator/core/recovery.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/failure_reporter.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/process/fault_hook.h"
#include "allocator/profile/heap_profile.h"
#include "allocator/reports/address_facts.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {

// Config::name.
const char* ProductVariant();
// Makes sure that the options are read, in a program that never allocates, too.
void ProductStart();
Statistics ProductStatistics();
// A walk over all slabs.
LiveCount ProductLiveCount();
// Gives all cached memory back; returns the bytes given back.
std::size_t ProductPurge();
// hakmem_check_heap.
std::size_t ProductCheckHeap();
// Allocator::CheckBlocks.
std::size_t ProductCheckBlocks(HeapCheckCursor& place);
void ProductCheckAtExit();
// For walks over all blocks.
Ace& ProductAce();
// Allocator::Prewarm for the calling thread.
std::size_t ProductPrewarm(std::size_t size, std::size_t count);
// The round of the helper thread each time it wakes.
void ProductMaintain();
// Serves the nothrow forms of new beyond their hot paths; null: no memory.
// `alignment` is a power of two.
void* ProductNewOrNull(std::size_t size, std::size_t alignment, Call call,
                       bool aligned) noexcept;
// Whether the program has replaced neither the form nor one that it calls.
bool ProductOwnsNew(bool array, bool aligned);
// Whether the program has replaced no operator that others go through; where
// kinds are checked, none at all.
bool ProductHasAllOperators();
// Allocator::Recover, TryAgain.
void* ProductRecover(const Request& request, const CallResult& got,
                     const void* frame, FailedCall& failed);
void* ProductTryAgain(FailedCall& failed);
Recovery& ProductRecovery();
// Tells the call trace of a block that the cold end of a call has got.
void ProductTraceRecovered(const FailedCall& failed, const void* block,
                           const void* frame);

MemoryFigures ProductFigures();
FailureReporter& ProductReporter();
GuardedBlocks& ProductGuards();
HeapProfile& ProductProfile();
// HAKMEM_FAIL_NTH.
void ProductFailNth(std::uint64_t nth, bool from_then_on);

// Where the call trace keeps its rings.
Address ProductTraceWindow();

// What some variants keep of calls: a call trace, the history of blocks. Once
// the options are read; once libc can make threads; at the process's end.
void ProductEnableRecords();
void ProductOpenRecords();
void ProductFinishRecords();

// At a thread's exit, and around fork.
void ProductExitThread();
void ProductPrepareFork();
void ProductParentAfterFork();
void ProductChildAfterFork();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_CURRENT_PRODUCT_H_
