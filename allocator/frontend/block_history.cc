#include "allocator/frontend/block_history.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/config/options.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/lookup/lookup.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/process.h"
#include "allocator/reports/report_sources.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

// The most that call stacks take; calls from places beyond that have none.
constexpr std::size_t kMaxStackBytes = 64 * kMiB;

constinit LinuxVirtualMemory g_memory;
constinit FutexLock g_start_lock;
// Written under g_start_lock by the thread that records the first block.
constinit std::atomic<bool> g_started{false};

// The kernel's; 0: not asked yet.
constinit thread_local int t_thread_id HAK_TLS_INITIAL_EXEC = 0;

// The region has its place by the time there is a block.
void StartOnce() {
  const FutexLockHolder hold(g_start_lock);
  if (g_started.load(std::memory_order_relaxed)) return;
  const Region& region = ProductAce().region();
  internal::g_records.Start(region);
  const Region::Window window = region.heap_window(Region::kStackWindow);
  internal::g_stacks.Start(window.begin,
                           std::min<std::size_t>(window.bytes, kMaxStackBytes));
  // release: pairs with the acquire in Started.
  g_started.store(true, std::memory_order_release);
}

bool Started() {
  // acquire: pairs with the release in StartOnce.
  return g_started.load(std::memory_order_acquire);
}

int CurrentThread() {
  if (t_thread_id == 0) t_thread_id = KnownThreadId();
  return t_thread_id;
}

StackId CurrentStack(const void* frame) {
  CallStack stack;
  CaptureCallers(static_cast<Unwinding>(CurrentOptions().unwind), frame, stack);
  return internal::g_stacks.Intern({stack.addresses, stack.count});
}

void FindEvent(const std::atomic<StackId>& stack,
               const std::atomic<std::int32_t>& thread,
               BlockHistory::Event& event) {
  event.thread_id = thread.load(std::memory_order_relaxed);
  event.known = event.thread_id != 0;
  const auto frames =
      internal::g_stacks.Frames(stack.load(std::memory_order_relaxed));
  event.stack.count = static_cast<unsigned>(frames.size());
  std::copy(frames.begin(), frames.end(), event.stack.addresses);
}

// For reports.
void FindBlockHistory(std::uintptr_t block, BlockHistory& history) {
  const auto* start = reinterpret_cast<const void*>(block);
  const BlockRecord* record =
      Started() ? internal::g_records.Find(start) : nullptr;
  if (record == nullptr) return;
  FindEvent(record->allocation_stack, record->allocation_thread,
            history.allocation);
  // A call that was refused has not freed it.
  if (LookUp(ProductAce(), block).block.live) return;
  FindEvent(record->free_stack, record->free_thread, history.release);
}

}  // namespace

constinit StackDepot internal::g_stacks{g_memory};
constinit BlockRecords internal::g_records{g_memory};

void RecordAllocation(const void* block, const void* frame) {
  if (block == nullptr) return;
  if (!Started()) [[unlikely]]
    StartOnce();
  BlockRecord* record = internal::g_records.Make(block);
  if (record == nullptr) return;
  record->allocation_stack.store(CurrentStack(frame),
                                 std::memory_order_relaxed);
  record->allocation_thread.store(CurrentThread(), std::memory_order_relaxed);
  // That of the block that was here before.
  record->free_thread.store(0, std::memory_order_relaxed);
}

void RecordFree(const void* block, const void* frame) {
  LiveBlock live;
  if (block == nullptr || !Started() ||
      !FindLiveBlock(ProductAce(), block, live)) {
    return;
  }
  BlockRecord* record = internal::g_records.Make(block);
  if (record == nullptr) return;
  record->free_stack.store(CurrentStack(frame), std::memory_order_relaxed);
  record->free_thread.store(CurrentThread(), std::memory_order_relaxed);
}

void EnableHistory() { SetHistorySource(&FindBlockHistory); }

void FinishHistory() {
  const char* const path = CurrentOptions().leaks;
  if (path[0] != '\0' && Started()) ReportLeaks(path);
}

void PrepareHistoryFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  g_start_lock.LockForFork();
  internal::g_records.lock().LockForFork();
  internal::g_stacks.lock().LockForFork();
}

void HistoryParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  internal::g_stacks.lock().UnlockAfterFork();
  internal::g_records.lock().UnlockAfterFork();
  g_start_lock.UnlockAfterFork();
}

void HistoryChildAfterFork() {
  t_thread_id = 0;
  internal::g_records.lock().ResetAfterFork();
  internal::g_stacks.lock().ResetAfterFork();
  g_start_lock.ResetAfterFork();
}

std::size_t HistoryBytes() {
  return internal::g_records.mapped_bytes() + internal::g_stacks.mapped_bytes();
}

}  // namespace hakmem
