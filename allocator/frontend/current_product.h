// What the frontend's shared files ask of the one product they are linked into.
//
// Owns: nothing; the variant's file defines these, through c_symbols.inc.
// Called by: frontend alone. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_CURRENT_PRODUCT_H_
#define HAKMEM_ALLOCATOR_FRONTEND_CURRENT_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "allocator/core/failed_call.h"
#include "allocator/diag/address_facts.h"
#include "allocator/diag/failure_event.h"
#include "allocator/diag/failure_reporter.h"
#include "allocator/diag/failure_ring.h"
#include "allocator/diag/statistics.h"
#include "allocator/platform/fault_hook.h"

namespace hakmem {

// Config::name.
const char* ProductVariant();
// Makes sure that the options are read, in a program that never allocates, too.
void ProductStart();
Statistics ProductStatistics();
// Gives all cached memory back; returns the bytes given back.
std::size_t ProductPurge();
// hakmem_check_heap.
std::size_t ProductCheckHeap();
// For walks over all blocks.
Ace& ProductAce();
// Allocator::Prewarm for the calling thread.
std::size_t ProductPrewarm(std::size_t size, std::size_t count);
// What the helper thread does each time it wakes.
void ProductMaintain();
// What the nothrow forms of new get beyond their hot paths; null: there is
// none. `alignment` is a power of two.
void* ProductNewOrNull(std::size_t size, std::size_t alignment, Call call,
                       bool aligned) noexcept;
// Leaves a refusal for ProductRecover.
void ProductRefuseAlignment(std::size_t size, std::size_t alignment);
// Whether the program has replaced neither the form nor one that it calls.
bool ProductOwnsNew();
bool ProductOwnsNewArray();
bool ProductOwnsNewAligned();
bool ProductOwnsNewArrayAligned();
// Allocator::Recover, TryAgain, Announce, Finish.
void* ProductRecover(Call call, const void* frame, FailedCall& failed);
void* ProductTryAgain(FailedCall& failed);
void ProductAnnounce(FailedCall& failed);
void ProductFinish(FailedCall& failed, Disposition disposition);
// Tells the call trace of a block got after a refusal.
void ProductTraceRecovered(const FailedCall& failed, const void* block,
                           const void* frame);

MemoryFigures ProductFigures();
// What an address is to hakmem; waits for no lock.
Surroundings ProductSurroundings(Address address);
const FailureRing& ProductFailures();
FailureReporter& ProductReporter();
// Allocator::Samples, ReportFault.
bool ProductSamples();
FaultVerdict ProductReportFault(const Fault& fault);
// HAKMEM_FAIL_NTH.
void ProductFailNth(std::uint64_t nth, bool from_then_on);

// What a variant with a call trace does for it; null in the others.
struct TraceHooks;
const TraceHooks* ProductTraceHooks();
// The same for one that keeps the history of blocks.
struct HistoryHooks;
const HistoryHooks* ProductHistoryHooks();
// Where the call trace keeps its rings.
Address ProductTraceWindow();

// What runs at a thread's exit and around fork.
struct ProductHooks {
  void (*thread_exit)(void* argument);
  void (*prepare_fork)();
  void (*parent_after_fork)();
  void (*child_after_fork)();
};
const ProductHooks& CurrentProductHooks();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_CURRENT_PRODUCT_H_
