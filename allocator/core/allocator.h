// The allocator: every call of the C and C++ interfaces comes down to one of
// these functions.
//
// Owns: ACE, all heaps, the failure ring. Called by: frontend, tests, fuzzers.
// Thread-safety: any thread, each with its own `self`.
//
// The path of a call (hot: allocator_hot.h; slow: allocator_slow.h):
//   Allocate   class by table → magazine pop → mark Live
//     AllocateSlow   attach a heap · magazine refill (ThreadHeap) · slab or
//                    span from ACE · Huge block
//       Resolve      what was refused is tried again after reclaiming, and
//                    becomes one event (allocator_failure.h)
//   Free       range and alignment by one comparison → header and unit record
//              by one comparison → mark Free → magazine push
//     TryFreeRemote  another heap's block: header and record as before → mark
//                    Queued by one exchange → parcel
//     FreeOther      a block of a thread without a heap · span · Huge block ·
//                    misuse
// `self` is the calling thread's heap pointer; it starts as NoHeap(). Slow
// paths attach a heap to it.
//
// Invariants: those of the layers below (CheckInvariants checks them all).
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/config/options.h"
#include "allocator/core/failed_call.h"
#include "allocator/core/pointer_facts.h"
#include "allocator/diag/failure_event.h"
#include "allocator/diag/failure_reporter.h"
#include "allocator/diag/failure_ring.h"
#include "allocator/diag/statistics.h"
#include "allocator/heap/heap_registry.h"

namespace hakmem {

// What the allocator asks of whoever embeds it.
struct Host {
  // Called once, before the first block is handed out; must not allocate.
  const Options& (*options)();
  // Called on a thread each time it gets a heap; may allocate, and may call
  // Detach when it cannot learn of the thread's exit.
  void (*on_attach)();
  // Completes failure events and hands them on.
  FailureReporter* reporter;
  // Asks the program to free memory for a call that failed; true: it is worth
  // trying again. May allocate and free. Null: nobody to ask.
  bool (*ask_for_memory)(const FailureEvent& event) = nullptr;
  // An event is complete. Must not allocate. Null: nobody wants to know.
  void (*on_failure)(const FailureEvent& event) = nullptr;
};

template <const Config& kConfig>
class Allocator {
 public:
  using Heap = ThreadHeap<kConfig>;

  constexpr Allocator(VirtualMemory& memory, const Host& host)
      : host_(host), ace_(memory), registry_(ace_) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // What a thread's heap pointer starts with.
  static constexpr Heap* NoHeap() { return &no_heap_; }

  // Reads the options and places the region, if no call has done so yet.
  void EnsureStarted() {
    // acquire: pairs with the release in Start.
    if (!started_.load(std::memory_order_acquire)) [[unlikely]]
      Start();
  }

  // --- Whole calls. Null: memory could not be had, and an event says why.
  // errno is not touched. The frontend puts the same together itself, because
  // only the end of a failing call may know which function the program called.

  // A block of at least `size_bytes`, aligned to 16 bytes.
  void* Allocate(Heap*& self, std::size_t size_bytes) {
    void* block = AllocateOnce(self, size_bytes);
    return block != nullptr ? block : Resolve(self, Call::kMalloc);
  }
  // Zeroed; null also when the product overflows.
  void* AllocateZeroed(Heap*& self, std::size_t count, std::size_t size_bytes) {
    void* block = TryAllocateZeroed(self, count, size_bytes);
    if (block == nullptr) block = AllocateZeroedSlow(self, count, size_bytes);
    return block != nullptr ? block : Resolve(self, Call::kCalloc);
  }
  // Aligned to `alignment_bytes`, a power of two.
  void* AllocateAligned(Heap*& self, std::size_t alignment_bytes,
                        std::size_t size_bytes) {
    void* block = TryAllocateAligned(self, alignment_bytes, size_bytes);
    if (block == nullptr) {
      block = AllocateSlow(self, size_bytes, alignment_bytes);
    }
    return block != nullptr ? block : Resolve(self, Call::kAlignedAlloc);
  }
  // Changes a block's size; size 0 counts as 1. Null: the block is as it was.
  void* Reallocate(Heap*& self, void* pointer, std::size_t size_bytes) {
    unsigned code = 0;
    if (TryReallocate(pointer, size_bytes, code)) return pointer;
    void* block = ReallocateSlow(self, pointer, size_bytes, code);
    return block != nullptr ? block : Resolve(self, Call::kRealloc);
  }

  // --- Calls in parts. Null: the call was refused, and the thread's next call
  // is Resolve, or Recover and what follows it.

  HAK_ALWAYS_INLINE void* AllocateOnce(Heap*& self, std::size_t size_bytes) {
    void* block = TryAllocate(self, size_bytes);
    if (block != nullptr) [[likely]]
      return block;
    return AllocateSlow(self, size_bytes, kMinAlignmentBytes);
  }
  // The hot part of AllocateOnce, which calls nothing. Null: ask AllocateSlow.
  // Sizes from `tiny_end` on take the path of Pool blocks, from `pool_end` on
  // the slow one; lower ends than these leave more to the slow one.
  HAK_ALWAYS_INLINE void* TryAllocate(Heap* heap, std::size_t size_bytes,
                                      std::size_t tiny_end = kMaxTinyBytes + 1,
                                      std::size_t pool_end = kMaxPoolBytes + 1);
  HAK_NOINLINE void* AllocateSlow(Heap*& self, std::size_t size_bytes,
                                  std::size_t alignment_bytes);
  // The same for zeroed blocks.
  HAK_ALWAYS_INLINE void* TryAllocateZeroed(Heap* heap, std::size_t count,
                                            std::size_t size_bytes);
  HAK_NOINLINE void* AllocateZeroedSlow(Heap*& self, std::size_t count,
                                        std::size_t size_bytes);
  // The hot part of an aligned allocation. Null: ask AllocateSlow.
  // Sizes, rounded up to the alignment, beyond `tiny_bytes` take the path of
  // Pool blocks, beyond `pool_bytes` the slow one.
  HAK_ALWAYS_INLINE void* TryAllocateAligned(
      Heap* heap, std::size_t alignment_bytes, std::size_t size_bytes,
      std::size_t tiny_bytes = kMaxTinyBytes,
      std::size_t pool_bytes = kMaxPoolBytes);
  // The hot part of a reallocation. True: the block has that size already.
  // False: nothing was done; ask ReallocateSlow, with the block's header code.
  HAK_ALWAYS_INLINE bool TryReallocate(const void* pointer,
                                       std::size_t size_bytes, unsigned& code);
  HAK_NOINLINE void* ReallocateSlow(Heap*& self, void* pointer,
                                    std::size_t size_bytes, unsigned code);
  // For callers whose own arithmetic overflowed, and for alignments that are no
  // power of two. Both return null.
  HAK_COLD static void* RefuseOverflow(std::size_t count,
                                       std::size_t size_bytes);
  HAK_COLD static void* RefuseAlignment(std::size_t alignment_bytes,
                                        std::size_t size_bytes);

  // --- The cold end of a call that was refused (allocator_failure.h).

  // Reclaims, asks the program for memory, tries again, and makes the event of
  // the call. The block, or null for good. `frame`: see FailureReporter.
  HAK_COLD void* Resolve(Heap*& self, Call call, const void* frame = nullptr);
  // The same, but does not give up for good: null leaves the event unfinished,
  // to be tried again or finished.
  HAK_COLD void* Recover(Heap*& self, Call call, const void* frame,
                         FailedCall& failed);
  // Tries once more, reclaiming if it must.
  HAK_COLD void* TryAgain(Heap*& self, FailedCall& failed);
  // The event is about to wait for the program: who looks at the ring meanwhile
  // finds it.
  HAK_COLD void Announce(FailedCall& failed);
  HAK_COLD void Finish(FailedCall& failed, Disposition disposition);

  // --- Freeing.

  // What TryFree has learnt of a pointer that it left alone.
  struct NotOwn {
    // Of the zone that it is in; null: of none that has slabs.
    std::atomic<HeaderByte>* headers = nullptr;
    std::uint64_t granule = 0;
    UnitRecord record_xor_tag = 0;
  };
  // Null is allowed. Anything but a live block is fatal.
  HAK_ALWAYS_INLINE void Free(Heap*& self, void* pointer) {
    NotOwn found;
    if (!TryFree(self, pointer, found) && !TryFreeRemote(self, pointer, found))
        [[unlikely]] {
      FreeOther(self, pointer);
    }
  }
  // The hot part of Free. False: nothing was done; ask
  // TryFreeRemote.
  HAK_ALWAYS_INLINE bool TryFree(Heap* heap, void* pointer, NotOwn& found);
  // Sends a live block of another heap there. False: it was none, nothing was
  // done; ask FreeOther.
  HAK_ALWAYS_INLINE bool TryFreeRemote(Heap* heap, void* pointer,
                                       const NotOwn& found);
  HAK_NOINLINE void FreeOther(Heap*& self, void* pointer);
  // The same; a size or alignment that the block cannot have been asked for
  // with is fatal, too.
  HAK_ALWAYS_INLINE void FreeSized(Heap*& self, void* pointer,
                                   std::size_t size_bytes,
                                   std::size_t alignment_bytes) {
    if (!TryFreeSized(self, pointer, size_bytes, alignment_bytes,
                      kMaxTinyBytes)) [[unlikely]] {
      FreeSizedSlow(self, pointer, size_bytes, alignment_bytes);
    }
  }
  // The hot part of FreeSized. False: nothing was done; ask FreeSizedSlow.
  // Sizes beyond `most_bytes`, at most kMaxTinyBytes, are not its business.
  HAK_ALWAYS_INLINE bool TryFreeSized(Heap* heap, void* pointer,
                                      std::size_t size_bytes,
                                      std::size_t alignment_bytes,
                                      std::size_t most_bytes);
  HAK_NOINLINE void FreeSizedSlow(Heap*& self, void* pointer,
                                  std::size_t size_bytes,
                                  std::size_t alignment_bytes);
  // The bytes that may be used; null has 0.
  std::size_t UsableSize(Heap*& self, const void* pointer);

  // The thread exits (or goes on: what it allocates later is served without a
  // heap of its own).
  void Detach(Heap*& self);
  // Around a fork, on the thread that forks: between PrepareFork and one of the
  // others, every lock is held.
  void PrepareFork();
  void ParentAfterFork();
  void ChildAfterFork(Heap*& self);

  // Has up to `count` blocks of `size_bytes`, at most kMaxPoolBytes, ready for
  // this thread, with their pages; returns how many. What the thread's budgets
  // do not hold is kept by ACE.
  std::size_t Prewarm(Heap*& self, std::size_t size_bytes, std::size_t count);
  // Gives back all memory that is free, except what other threads' loaded
  // magazines hold; returns the bytes given back.
  std::size_t Purge(Heap*& self);
  // For a thread that does nothing else: gives back what is idle, in all heaps,
  // and maps memory ahead of demand.
  void Maintain();
  Statistics Snapshot();
  // Addresses that no block and no table will ever have, for a call trace.
  Address TraceWindow() {
    EnsureStarted();
    return ace_.region().heap_window(3).begin;
  }
  MemoryFigures Figures();
  constexpr const FailureRing& failures() const { return failures_; }

  // Only while no other thread is inside.
  void CheckInvariants();

 private:
  struct Large {
    void* block = nullptr;
    bool known_zero = false;
  };

  static constexpr unsigned kFineUnitShift = kUnitShift - kFineGranuleShift;
  static constexpr unsigned kCoarseUnitShift = kUnitShift - kCoarseGranuleShift;

  ZoneView& fine() { return ace_.region().fine().view(); }
  ZoneView& coarse() { return ace_.region().coarse().view(); }

  HAK_ALWAYS_INLINE void MarkLive(ZoneView& view, unsigned granule_shift,
                                  void* block, HeaderByte live);
  HAK_COLD void FailHeaderOnReuse(void* block, HeaderByte found,
                                  HeaderByte live) const;
  HAK_ALWAYS_INLINE void* TryCache(typename Heap::ClassCache& cache, bool tiny);
  HAK_ALWAYS_INLINE bool FreeOwn(ZoneView& view, unsigned unit_shift,
                                 std::uint64_t granule, Heap* heap,
                                 void* pointer, NotOwn& found);
  HAK_ALWAYS_INLINE static void Push(Heap* heap,
                                     typename Heap::ClassCache& cache,
                                     void* block);

  HAK_ALWAYS_INLINE static unsigned LiveCodeAt(const ZoneView& view,
                                               unsigned unit_shift,
                                               std::uint64_t granule);
  HAK_ALWAYS_INLINE unsigned LiveCode(const void* pointer);
  void* AllocateClassSlow(Heap*& self, std::size_t size_bytes,
                          std::size_t alignment_bytes);
  Large AllocateLarge(std::size_t size_bytes, std::size_t alignment_bytes);
  Large TryLarge(std::size_t size_bytes, std::size_t alignment_bytes,
                 Refusal& refusal);
  Large TrySpan(std::size_t size_bytes, std::size_t alignment_bytes,
                Refusal& refusal);
  void* TryClass(Heap*& self, SizeClass size_class, Refusal& refusal);
  static bool HasHeap(const Heap* heap) { return heap->id() != kNoHeapId; }
  bool Attach(Heap*& self, Refusal& refusal);
  Heap* AnyHeap(Refusal& refusal);
  HAK_COLD void Start();
  HAK_COLD void Reclaim(Heap*& self);
  bool WithinThreshold(std::size_t size_bytes, std::size_t alignment_bytes,
                       Refusal& refusal) const;

  HAK_COLD static void* Refuse(std::size_t size_bytes,
                               std::size_t alignment_bytes,
                               const Refusal& refusal);
  HAK_COLD static void* RefuseZeroed(std::size_t count, std::size_t size_bytes);
  HAK_COLD static void* RefuseReallocation(void* pointer,
                                           std::size_t size_bytes);
  HAK_COLD static void* Park(std::size_t size_bytes,
                             std::size_t alignment_bytes,
                             const Refusal& refusal, void* block);
  void* Attempt(Heap*& self, FailedCall& failed);
  void NoteRefusal(FailedCall& failed);
  void DescribeLimit(const Refusal& refusal, FailureEvent& event);

  void FreeSlabBlock(Heap*& self, void* pointer, const LiveBlock& block);
  void FreeSpan(Heap* self, void* pointer, const LiveBlock& block);
  std::uint32_t RetireSpan(Heap* self, const void* pointer,
                           const LiveBlock& block);
  bool SizeFits(const LiveBlock& block, std::size_t size_bytes,
                std::size_t alignment_bytes) const;

  HAK_NOINLINE void* MoveTo(Heap*& self, void* pointer, std::size_t old_bytes,
                            std::size_t size_bytes);
  HAK_COLD void* MoveToRefused(Heap*& self, void* pointer);
  void* ReallocateSpan(Heap*& self, void* pointer, const LiveBlock& block,
                       std::size_t size_bytes);
  void* MoveSpan(Heap*& self, void* pointer, const LiveBlock& block,
                 std::size_t size_bytes);
  void* ReallocateHuge(Heap*& self, void* pointer, const LiveBlock& block,
                       std::size_t size_bytes);
  [[noreturn]] HAK_COLD void FailFreedAtOnce(Heap* heap, const void* pointer,
                                             SizeClass size_class, HeapId owner,
                                             HeaderByte found) const;
  LiveBlock Require(Heap*& self, const void* pointer, PointerUse use);
  BlockReport ReportFor(Heap* self, const void* pointer, PointerUse use) const;

  static void Count(std::atomic<std::uint64_t>& counter,
                    std::uint64_t amount = 1) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
  static void CountRealloc(std::atomic<std::uint64_t>& counter) {
    if constexpr (kConfig.count_all_calls) Count(counter);
  }

  // Without a system: no call can reach further than its magazines.
  static constinit Heap no_heap_;
  // Of threads whose exit hook has run: they get no heap again.
  static constinit Heap exited_heap_;
  // What the calling thread's last call that returned null leaves for Resolve.
  static constinit inline thread_local RefusedCall refused_
      HAK_TLS_INITIAL_EXEC = {};

  const Host& host_;
  Ace ace_;
  HeapRegistry<kConfig> registry_;
  FailureRing failures_;
  FutexLock start_lock_;
  std::atomic<bool> started_{false};  // written under start_lock_
  std::uint64_t max_alloc_bytes_ = 0;
  // A block once stayed in place though its new size has a smaller class,
  // because no memory was left; from then on sized frees may name that size.
  std::atomic<bool> shrunk_in_place_{false};
  // Statistics: written by any thread on slow paths.
  std::atomic<std::uint64_t> direct_allocations_[2] = {};  // Tiny, Pool
  std::atomic<std::uint64_t> direct_bytes_[2] = {};
  std::atomic<std::uint64_t> span_allocations_{0};
  std::atomic<std::uint64_t> span_bytes_{0};
  std::atomic<std::uint64_t> huge_allocations_{0};
  std::atomic<std::uint64_t> huge_bytes_{0};
  std::atomic<std::uint64_t> reallocs_in_place_{0};
  std::atomic<std::uint64_t> reallocs_moved_{0};
  std::atomic<std::uint64_t> failed_{0};
};

template <const Config& kConfig>
constinit ThreadHeap<kConfig> Allocator<kConfig>::no_heap_{nullptr, kNoHeapId};
template <const Config& kConfig>
constinit ThreadHeap<kConfig> Allocator<kConfig>::exited_heap_{nullptr,
                                                               kNoHeapId};

}  // namespace hakmem

#include "allocator/core/allocator_hot.h"  // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
