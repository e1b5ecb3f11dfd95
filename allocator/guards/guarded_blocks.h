// Sampled guards: the blocks that serve the allocations that are samples
// (profile/sample_gaps.h). Each is on pages of its own between inaccessible
// ones, with the stacks of its allocation and its free.
//
// Owns: the pool of slots and what is known of each. Called by: Allocator's
// slow paths, for the allocations that are to be guarded; the handler of
// faults. Thread-safety: any thread; Start before all else. One lock, late in
// the order, for the queue of slots and for mapping the pool: no other call of
// the kernel is made under it.
//
//   guard page | slot 0 | guard page | slot 1 | guard page | …
//
// The whole pool is reserved, inaccessible; a slot holds blocks of up to 64
// KiB. A live block's own pages alone are made accessible. They are the last
// ones of the slot, where the block ends at the guard page (but for what its
// alignment takes). They are the first ones, where it begins at a guard page.
// The rest of these pages bears a canary next to the block. A freed block's
// pages are inaccessible and hold no memory until the slot is used again. That
// is as late as can be: first all unused slots are taken, then the slot with
// the oldest free. (The scheme is that of Electric Fence, B. Perens, 1987; to
// sample it: GWP-ASan, K. Serebryany et al., 2018-2023.)
//
// Invariants:
//   GB1: each slot is in the queue (Free), or nobody's yet (Unused), or holds a
//       block (Live), or one thread is changing it (Busy, Freeing, Freed), or
//       it is not used again (Lost).
//   GB2: of a Live slot the block's pages alone are accessible, and of a Free
//        slot nothing. Exceptions: the kernel refused to protect it, or the
//        program went on after a misuse.
//   GB3: a block is aligned as asked and lies within its slot; one of 0 bytes
//       starts at the guard page behind it.
#ifndef HAKMEM_ALLOCATOR_GUARDS_GUARDED_BLOCKS_H_
#define HAKMEM_ALLOCATOR_GUARDS_GUARDED_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/reports/block_report.h"
#include "allocator/reports/guard_reports.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

struct Fault;
struct LiveBlock;
enum class FaultVerdict : std::uint8_t;

class GuardedBlocks {
 public:
  // The largest block.
  static constexpr std::size_t kMaxBytes = 64 * kKiB;

  explicit constexpr GuardedBlocks(VirtualMemory& memory) : memory_(memory) {}
  GuardedBlocks(const GuardedBlocks&) = delete;
  GuardedBlocks& operator=(const GuardedBlocks&) = delete;

  // Once. The first Allocate maps the pool: a program whose malloc is another's
  // may want these addresses. Without memory for it the next one tries again.
  void Start(const HeapOptions& options, Region::Window window);

  // While one exists, the calling thread's allocations are not sampled: what it
  // gets can tell its stack no more.
  class Pause {
   public:
    Pause() = default;
    ~Pause() { paused_ = before_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    // A signal handler may have one that interrupted a thread with another.
    const bool before_ = std::exchange(paused_, true);
  };
  static bool paused() { return paused_; }

  // A block, known zero, or null: the thread has a Pause, the block is too
  // large or too strictly aligned, no slot is free, or the kernel refused.
  // `random` chooses the side. Its stack and kind are told later.
  HAK_COLD void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes,
                          std::uint32_t random);
  // Called for a live block by the thread that allocates it.
  void SetKind(const void* pointer, BlockKind kind);
  // The end of a call that was served by guarded blocks, at the entry point:
  // they get their stack. `left`: the block that a realloc has left for this,
  // or null. `frame`: see FailureReporter.
  HAK_COLD void Finish(const void* block, const void* left,
                       const BlockReport& call, const void* frame);

  // Whether there may be guarded blocks.
  bool has_slots() const { return slot_count_ != 0; }
  // Whether there is a pool. acquire: as in Contains.
  bool on() const { return pool_bytes_.load(std::memory_order_acquire) != 0; }
  bool Contains(const void* pointer) const {
    // acquire: pairs with the release in Map.
    const std::size_t bytes = pool_bytes_.load(std::memory_order_acquire);
    return reinterpret_cast<Address>(pointer) - pool_ < bytes;
  }
  // As FindLiveBlock (lookup.h), of guarded blocks.
  bool FindLive(const void* pointer, LiveBlock& block) const {
    return Contains(pointer) && FindLiveInPool(pointer, block);
  }

  // Whether the canary around a live block is as it was.
  bool IsIntact(const void* pointer) const;

  // Frees the block at `call.pointer`. Anything but a live block's start is
  // reported, and so is damage to the canary; if that returns, the block is
  // what it was before.
  HAK_COLD void Free(const BlockReport& call, const void* frame);
  // The block stays where it is; it counts as smaller now.
  void Shrink(const void* pointer, std::size_t size_bytes);

  // Report that no live block starts at `call.pointer`, which is in the pool;
  // or that one does which is not intact, or of which `tell(call, more)`
  // reports something else. All return if the program is to go on
  // (HAKMEM_ON_MISUSE=log).
  HAK_COLD void ReportMisuse(BlockReport call) const;
  HAK_COLD void ReportDamage(const BlockReport& call);
  template <typename Tell, typename... More>
  HAK_COLD void Report(Tell tell, BlockReport call, More... more) const {
    const GuardedBlockFacts facts = FactsOf(SlotOf(call.pointer));
    call.guarded = &facts;
    tell(call, more...);
  }
  // Reports an access that faulted. Unknown: it was not to the pool, or not one
  // that must fault. If the program is to go on, its page becomes accessible,
  // and the slot is not used again.
  HAK_COLD FaultVerdict ReportFault(const Fault& fault, const char* variant);

  // The blocks that the program holds, and what it asked for.
  std::uint64_t live_blocks() const {
    return live_blocks_.load(std::memory_order_relaxed);
  }
  std::uint64_t live_bytes() const {
    return live_bytes_.load(std::memory_order_relaxed);
  }
  // For readers from outside.
  constexpr const std::atomic<std::uint64_t>& live_blocks_word() const {
    return live_blocks_;
  }
  constexpr const std::atomic<std::uint64_t>& live_bytes_word() const {
    return live_bytes_;
  }
  // Calls `visit(bytes, stack)` for each block that the program holds: what it
  // asked for, and where.
  template <typename Visit>
  void VisitLive(const Visit& visit) const {
    for (SlotIndex index = 0; on() && index < slot_count_; ++index) {
      const GuardedBlockFacts facts = FactsOf(index);
      if (!facts.freed) visit(facts.size_bytes, facts.history.allocation.stack);
    }
  }
  // What is known of each slot.
  constexpr const MetadataTable& table() const { return slots_; }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    VisitTable(slots_, visit);
    visit(Statistic::kMapCalls, map_calls_);
    visit(Statistic::kPurgeCalls, purge_calls_);
  }

  // For a fork. The child keeps all blocks; slots that other threads were
  // changing are lost to it.
  FutexLock& lock() { return lock_; }

  // Only while no other thread is inside.
  void CheckInvariants();

 private:
  using SlotIndex = std::uint32_t;
  static constexpr SlotIndex kNoSlot = ~SlotIndex{0};

  // While a slot is Freeing or Freed, its block is no longer live; once it is
  // Freed, it is known who has freed it. So other threads that use the block
  // meanwhile are told what they do.
  enum class State : std::uint8_t {
    kUnused,
    kBusy,
    kLive,
    kFreeing,
    kFreed,
    kFree,
    kLost
  };

  struct Slot {
    // Written by who allocates or frees the block, read by all.
    std::atomic<State> state;
    // The program went on after a misuse here, so that its pages or its canary
    // are not as they should be. Set by any thread.
    std::atomic<bool> misused;
    // The rest is written while the slot is Busy, and what is known of the free
    // while it is Freeing.
    // A refused call of the kernel has left something in its pages.
    bool dirty;
    Address start;  // of the block
    std::size_t size_bytes;
    BlockKind kind;
    Address pages;  // of the block, accessible while it is live
    std::size_t pages_bytes;
    int allocated_by;
    int freed_by;
    CallStack allocation;
    CallStack free;
    SlotIndex next;  // in the queue
  };

  Slot& At(SlotIndex index) const {
    return *(reinterpret_cast<Slot*>(slots_.start()) + index);
  }
  std::size_t TableBytes() const {
    return RoundUp(slot_count_ * sizeof(Slot), page_bytes_);
  }
  Address SlotAddress(SlotIndex index) const {
    return pool_ + page_bytes_ + index * stride_bytes_;
  }
  HAK_COLD bool FindLiveInPool(const void* pointer, LiveBlock& block) const;
  void Free(const BlockReport& call, const CallStack& stack);
  // False: there is no pool.
  bool Map() ABSL_LOCKS_EXCLUDED(lock_);
  SlotIndex TakeSlot() ABSL_LOCKS_EXCLUDED(lock_);
  void PutSlot(SlotIndex index) ABSL_LOCKS_EXCLUDED(lock_);
  // The slot of the block that starts at the address, or else holds it or is
  // nearest to it; kNoSlot: it lies by slots that were never used.
  SlotIndex FindSlot(Address address) const;
  SlotIndex SlotOf(const void* pointer) const {
    return FindSlot(reinterpret_cast<Address>(pointer));
  }
  bool IsBlock(SlotIndex index) const;
  std::uint8_t CanaryByte(Address address) const;
  // The canary is up to so many bytes on either side of the block.
  static constexpr std::size_t kMaxCanaryBytes = 64;
  static Address CanaryBegin(const Slot& slot);
  static Address CanaryEnd(const Slot& slot);
  void FillCanary(const Slot& slot) const;
  // The first byte that is not as it was; 0: none.
  Address FindDamage(const Slot& slot) const;
  GuardedBlockFacts FactsOf(SlotIndex index) const;
  // False: it was not one that must fault.
  HAK_COLD bool TellFault(const Fault& fault, SlotIndex index,
                          const char* variant) const;
  HAK_COLD bool TellFaultShortly(const Fault& fault, SlotIndex index) const;
  bool Open(SlotIndex nearest, Address address);

  static constinit inline thread_local bool paused_ HAK_TLS_INITIAL_EXEC =
      false;

  VirtualMemory& memory_;
  // HAKMEM_UNWIND. Written by Start.
  Unwinding unwinding_ = Unwinding::kTables;
  // Written by Start, but secret_ and the table by Map, before pool_bytes_.
  Address pool_ = 0;
  MetadataTable slots_;
  std::size_t page_bytes_ = 0;
  std::size_t stride_bytes_ = 0;
  SlotIndex slot_count_ = 0;
  std::uint64_t secret_ = 0;
  // 0: there is no pool.
  std::atomic<std::size_t> pool_bytes_{0};

  FutexLock lock_;
  SlotIndex unused_ ABSL_GUARDED_BY(lock_) = 0;  // from here on
  SlotIndex first_ ABSL_GUARDED_BY(lock_) = kNoSlot;
  SlotIndex last_ ABSL_GUARDED_BY(lock_) = kNoSlot;

  // Written by any thread, read by statistics.
  std::atomic<std::uint64_t> live_blocks_{0};
  std::atomic<std::uint64_t> live_bytes_{0};
  std::atomic<std::uint64_t> map_calls_{0};
  std::atomic<std::uint64_t> purge_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_GUARDS_GUARDED_BLOCKS_H_
