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
#include "allocator/core/block_canary.h"
#include "allocator/core/block_walk.h"
#include "allocator/core/call_counters.h"
#include "allocator/core/failed_call.h"
#include "allocator/core/find_block.h"
#include "allocator/core/guarded_blocks.h"
#include "allocator/core/host.h"
#include "allocator/core/pointer_facts.h"
#include "allocator/diag/failure_event.h"
#include "allocator/diag/failure_reporter.h"
#include "allocator/diag/failure_ring.h"
#include "allocator/diag/statistics.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/platform/own_stack.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {

template <const Config& kConfig>
class Allocator {
 public:
  using Heap = ThreadHeap<kConfig>;

  constexpr Allocator(VirtualMemory& memory, const Host& host)
      : host_(host), ace_(memory), registry_(ace_), guards_(memory) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // What a block has beyond what was asked for, at least.
  static constexpr std::size_t kSlackBytes =
      kConfig.check_bounds ? kMinSlackBytes : 0;
  // Sizes below these are Tiny's, and Pool's.
  static constexpr std::size_t kTinyEnd = kMaxTinyBytes + 1 - kSlackBytes;
  static constexpr std::size_t kPoolEnd = kMaxPoolBytes + 1 - kSlackBytes;
  // Whether all of a block for so many bytes was found to be zero when it was
  // handed out: longer ones are looked at in places.
  static constexpr bool IsKnownClear(std::size_t size_bytes);

  // What a thread's heap pointer starts with.
  static constexpr Heap* NoHeap() { return &no_heap_; }
  // Reads the options and places the region, if no call has done so yet.
  void EnsureStarted() {
    // acquire: pairs with the release in Start.
    if (!plain_.load(std::memory_order_acquire)) [[unlikely]]
      Start();
  }

  // --- Whole calls. Null: memory could not be had, and an event says why.
  // errno is not touched. The frontend puts the same together itself, because
  // only the end of a failing call may know which function the program called.

  // A block of at least `size_bytes`, aligned to 16 bytes.
  void* Allocate(Heap*& self, std::size_t size_bytes);
  // Zeroed; null also when the product overflows.
  void* AllocateZeroed(Heap*& self, std::size_t count, std::size_t size_bytes);
  // Aligned to `alignment_bytes`, a power of two.
  void* AllocateAligned(Heap*& self, std::size_t alignment_bytes,
                        std::size_t size_bytes);
  // Changes a block's size; size 0 counts as 1. Null: the block is as it was.
  // After a misuse there is no event.
  void* Reallocate(Heap*& self, void* pointer, std::size_t size_bytes);

  // --- Calls in parts. Null: the call was refused, and the thread's next call
  // is Resolve, or Recover and what follows it.

  HAK_ALWAYS_INLINE void* AllocateOnce(Heap*& self, std::size_t size_bytes);
  // The hot part of AllocateOnce, which calls nothing. Null: ask AllocateSlow.
  // Sizes from `tiny_end` on take the path of Pool blocks, from `pool_end` on
  // the slow one; lower ends than these leave more to the slow one.
  HAK_ALWAYS_INLINE void* TryAllocate(Heap* heap, std::size_t size_bytes,
                                      std::size_t tiny_end = kTinyEnd,
                                      std::size_t pool_end = kPoolEnd,
                                      BlockKind kind = BlockKind::kMalloc);
  // The block's kind, for what AllocateSlow and those below it hand out.
  HAK_NOINLINE void SetKind(void* block, BlockKind kind);
  HAK_NOINLINE void* AllocateSlow(Heap*& self, std::size_t size_bytes,
                                  std::size_t alignment_bytes);
  // The same for zeroed blocks.
  HAK_ALWAYS_INLINE void* TryAllocateZeroed(Heap* heap, std::size_t count,
                                            std::size_t size_bytes);
  HAK_NOINLINE void* AllocateZeroedSlow(Heap*& self, std::size_t count,
                                        std::size_t size_bytes);
  // The hot part of an aligned allocation. Null: ask AllocateSlow.
  // Blocks beyond `tiny_bytes` take the path of Pool blocks, beyond
  // `pool_bytes` the slow one.
  HAK_ALWAYS_INLINE void* TryAllocateAligned(
      Heap* heap, std::size_t alignment_bytes, std::size_t size_bytes,
      std::size_t tiny_bytes = kMaxTinyBytes,
      std::size_t pool_bytes = kMaxPoolBytes,
      BlockKind kind = BlockKind::kMalloc);
  // The hot part of a reallocation. True: the block has that size already.
  // False: nothing was done; ask ReallocateSlow, with the block's header code.
  HAK_ALWAYS_INLINE bool TryReallocate(void* pointer, std::size_t size_bytes,
                                       unsigned& code);
  HAK_NOINLINE void* ReallocateSlow(Heap*& self, void* pointer,
                                    std::size_t size_bytes, unsigned code);
  // For products that overflow, and alignments that are no power of two. Null.
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
  // The event, about to wait for the program, is in the ring from now on.
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
  // Null is allowed. All but live blocks is reported, and then left alone.
  HAK_ALWAYS_INLINE void Free(Heap*& self, void* pointer,
                              BlockKind kind = BlockKind::kMalloc);
  // The hot part of Free; in variants that keep bounds, of Tiny blocks alone,
  // which need no stack frame. False: nothing was done; ask TryFreeRemote.
  HAK_ALWAYS_INLINE bool TryFree(Heap* heap, void* pointer, NotOwn& found,
                                 BlockKind kind = BlockKind::kMalloc);
  // Sends a live block of another heap there. False: it was none, nothing was
  // done; ask FreeOther.
  HAK_ALWAYS_INLINE bool TryFreeRemote(Heap* heap, void* pointer, NotOwn found,
                                       BlockKind kind = BlockKind::kMalloc);
  HAK_NOINLINE void FreeOther(Heap*& self, void* pointer,
                              BlockKind kind = BlockKind::kMalloc);
  // The same; a size or alignment that the block cannot have been asked for
  // with is a misuse, too.
  HAK_ALWAYS_INLINE void FreeSized(Heap*& self, void* pointer,
                                   std::size_t size_bytes,
                                   std::size_t alignment_bytes,
                                   BlockKind kind = BlockKind::kMalloc);
  // The hot part of FreeSized. False: nothing was done; ask FreeSizedSlow.
  // Sizes beyond `most_bytes`, which is below kTinyEnd, are not its business.
  HAK_ALWAYS_INLINE bool TryFreeSized(Heap* heap, void* pointer,
                                      std::size_t size_bytes,
                                      std::size_t alignment_bytes,
                                      std::size_t most_bytes,
                                      BlockKind kind = BlockKind::kMalloc);
  HAK_NOINLINE void FreeSizedSlow(Heap*& self, void* pointer,
                                  std::size_t size_bytes,
                                  std::size_t alignment_bytes,
                                  BlockKind kind = BlockKind::kMalloc);
  // The checks of FreeSizedSlow. True: Free does the rest.
  HAK_ALWAYS_INLINE bool MayFreeSized(Heap*& self, void* pointer,
                                      std::size_t size_bytes,
                                      std::size_t alignment_bytes,
                                      BlockKind kind);
  // The bytes that may be used; null has 0, and so has a misuse.
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
  // Gives back all free memory but what other threads' loaded magazines hold;
  // returns the bytes.
  std::size_t Purge(Heap*& self);
  // For a thread that does nothing else: trims all heaps, and maps ahead.
  void Maintain();
  Statistics Snapshot();
  // Addresses of no block and no table, for a call trace.
  Address TraceWindow() {
    EnsureStarted();
    return ace_.region().heap_window(3).begin;
  }
  MemoryFigures Figures();
  // What an address is. Waits for no lock; signal handlers may call it.
  Surroundings Around(Address address) {
    return FindBlockAround(ace_, address);
  }
  constexpr const FailureRing& failures() const { return failures_; }

  // For walks over all blocks, and tests that damage their tables.
  constexpr Ace& ace() { return ace_; }

  // --- Sampled guards (allocator_guards.h).

  // Whether allocations are sampled.
  bool Samples();
  // For a handler of faults.
  HAK_COLD FaultVerdict ReportFault(const Fault& fault);
  // FreeOther for a pointer that is in no zone of slabs. `frame`: see
  // FailureReporter.
  HAK_COLD void FreeOutside(Heap*& self, void* pointer, BlockKind kind,
                            const void* frame);

  // What a report begins with; `self` may be null.
  BlockReport ReportFor(Heap* self, const void* pointer, PointerUse use) const;

  // Only while no other thread is inside.
  void CheckInvariants();
  // At any time: the layers' invariants, and in variants that keep bounds every
  // live block's canary and every free block's fill; reports the first damaged
  // block and returns how many there are. See hakmem.h.
  HAK_COLD std::size_t CheckHeap(Heap*& self);

 private:
  struct Large {
    void* block = nullptr;
    bool known_zero = false;
  };

  static constexpr unsigned kFineUnitShift = kUnitShift - kFineGranuleShift;
  static constexpr unsigned kCoarseUnitShift = kUnitShift - kCoarseGranuleShift;

  ZoneView& fine() { return ace_.region().fine().view(); }
  ZoneView& coarse() { return ace_.region().coarse().view(); }

  // Of the zone that has Tiny blocks, or the one that has Pool blocks.
  template <bool kTiny>
  ZoneView& View() {
    return kTiny ? fine() : coarse();
  }

  template <bool kTiny>
  HAK_ALWAYS_INLINE bool HandOut(void* block, HeaderByte live,
                                 const PiecedLength& length,
                                 std::size_t size_bytes, BlockKind kind,
                                 std::uint32_t turn);
  bool HandOutOf(SizeClass size_class, void* block, std::size_t size_bytes);
  template <bool kTiny>
  static HAK_ALWAYS_INLINE void ClearFreed(void* block,
                                           const PiecedLength& length);
  static HAK_ALWAYS_INLINE void* Cleared(void* block, std::size_t bytes);
  HAK_COLD void FailHeaderOnReuse(void* block, HeaderByte found,
                                  HeaderByte live) const;
  HAK_COLD void FailFillOnReuse(void* block, HeaderByte live) const;
  HAK_COLD BlockReport ReportOnReuse(const void* block, HeaderByte live) const;
  template <bool kTiny>
  HAK_ALWAYS_INLINE void* TryCache(typename Heap::ClassCache& cache,
                                   std::size_t size_bytes, BlockKind kind);
  HAK_NOINLINE void* TryPoolCache(Heap* heap, std::size_t size_bytes,
                                  BlockKind kind);
  template <bool kTiny>
  HAK_ALWAYS_INLINE bool FreeOwn(std::uint64_t granule, Heap* heap,
                                 void* pointer, NotOwn& found, BlockKind kind);
  HAK_ALWAYS_INLINE bool TryFreePool(Heap* heap, void* pointer, NotOwn& found,
                                     BlockKind kind);
  HAK_ALWAYS_INLINE static const PiecedLength& LengthOf(
      const typename Heap::ClassCache& cache, std::size_t code);
  template <bool kTiny>
  HAK_ALWAYS_INLINE void Push(Heap* heap, typename Heap::ClassCache& cache,
                              void* block, std::size_t code);

  // Bounds: allocator_bounds.h.
  HAK_ALWAYS_INLINE BlockCanary CanaryOf(const void* block,
                                         std::size_t size_bytes) const {
    return {reinterpret_cast<Address>(block), size_bytes, canary_secret_};
  }
  static SizeClass ClassFor(std::size_t size_bytes,
                            std::size_t alignment_bytes);
  template <bool kTiny>
  bool ResizeIn(void* pointer, std::size_t size_bytes);
  HAK_NOINLINE bool ResizeInPlace(void* pointer, unsigned code,
                                  std::size_t size_bytes);
  std::size_t SizeOfLive(const void* pointer, SizeClass size_class);
  HAK_NOINLINE bool MayUse(Heap* self, const void* pointer,
                           const LiveBlock& block, PointerUse use,
                           BlockKind kind);
  HAK_ALWAYS_INLINE bool MayFreeQueued(Heap* heap, const void* pointer,
                                       SizeClass size_class, HeapId owner,
                                       BlockKind kind);
  // Of spans and Huge blocks: the size is set; the canary goes, and what is
  // beyond the new size.
  void StartBounds(void* block, std::size_t size_bytes);
  void StopBounds(void* block, std::size_t old_bytes, std::size_t size_bytes);
  // Of a block that stays where it is though a smaller one would do.
  void SetSize(void* block, std::size_t size_bytes);

  // allocator_check.h.
  BlockDamage LookAt(const Zone& zone, Address address, UnitRecord record,
                     std::size_t block_bytes) const;
  BlockDamage LookAtLarge(const void* start);
  template <typename Look>
  static void CheckBlock(const Look& look, HeapDamage& damage);
  void CheckUnit(const Zone& zone, UnitIndex unit, UnitRecord record,
                 HeapDamage& damage);
  Address WrittenSinceRelease(const Zone& zone, UnitIndex unit);
  void CheckReleased(const Zone& zone, HeapDamage& damage);
  void ReportDamage(Heap* self, const BlockDamage& damage);

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
  bool IsAsItWasLeft(const Ace::Grant& grant, std::uint32_t units) const;
  void ZeroLarge(void* block, std::size_t bytes);
  void* AllocateEmpty(std::size_t alignment_bytes);
  std::uint32_t SpanUnitsFor(std::size_t size_bytes) const;
  void* TryClass(Heap*& self, SizeClass size_class, std::size_t size_bytes,
                 Refusal& refusal);
  struct Watched {
    bool done = false;
    void* block = nullptr;
  };
  HAK_COLD Watched AllocateWatched(Heap*& self, std::size_t size_bytes,
                                   std::size_t alignment_bytes);
  bool AllocateGuarded(SizeClass size_class, std::size_t size_bytes,
                       std::size_t alignment_bytes);
  void* ReallocateGuarded(Heap*& self, void* pointer, std::size_t old_bytes,
                          std::size_t size_bytes);
  void* FinishSampled(Heap* self, Call call, const void* frame,
                      FailedCall& failed);
  void MeetHeap(Heap* heap);
  HAK_COLD void FreeGuarded(Heap* self, const void* pointer, const void* frame);
  HAK_COLD void ReportGuardMisuse(Heap* self, const void* pointer,
                                  PointerUse use);
  HAK_COLD void ReportGuardSize(const BlockReport& report,
                                std::size_t given_bytes);
  HAK_COLD void ReportGuardAlignment(const BlockReport& report,
                                     std::size_t given_alignment);
  HAK_COLD void ReportGuardMismatch(const BlockReport& report,
                                    BlockKind freed_by);
  void CaptureCaller(const void* frame, CallStack& stack) const;
  HAK_ALWAYS_INLINE bool FindLive(const void* pointer, LiveBlock& block) {
    return FindLiveBlock(ace_, pointer, block) ||
           FindGuardedBlock(guards_, pointer, block);
  }
  // The thread's heap, which it still has while it waits.
  static Heap* RealHeap(Heap* self) {
    return self == &waiting_heap_ ? sampling_.heap : self;
  }
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

  void FreeSlabBlock(Heap*& self, void* pointer, const LiveBlock& block,
                     BlockKind kind);
  void FreeSpan(Heap* self, void* pointer, const LiveBlock& block);
  std::uint32_t RetireSpan(Heap* self, const void* pointer,
                           const LiveBlock& block);
  bool SizeFits(const LiveBlock& block, std::size_t size_bytes,
                std::size_t alignment_bytes);

  HAK_NOINLINE void* MoveTo(Heap*& self, void* pointer, std::size_t old_bytes,
                            std::size_t size_bytes);
  HAK_COLD void* MoveToRefused(Heap*& self, void* pointer);
  void* ReallocateSpan(Heap*& self, void* pointer, const LiveBlock& block,
                       std::size_t size_bytes);
  void* ReallocateRange(Heap*& self, void* pointer, const LiveBlock& block,
                        std::size_t size_bytes);
  void ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty = true);
  void* MoveSpan(Heap*& self, void* pointer, const LiveBlock& block,
                 std::size_t size_bytes);
  void* ReallocateHuge(Heap*& self, void* pointer, const LiveBlock& block,
                       std::size_t size_bytes);
  HAK_COLD void FailFreedAtOnce(Heap* heap, const void* pointer,
                                SizeClass size_class, HeapId owner,
                                HeaderByte found);
  bool Require(Heap*& self, const void* pointer, PointerUse use,
               LiveBlock& block);
  HAK_NOINLINE std::size_t UsableSizeSlow(Heap*& self, const void* pointer);
  HAK_COLD static void* RefuseMisuse();

  static void Count(std::atomic<std::uint64_t>& counter,
                    std::uint64_t amount = 1) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
  static void CountRealloc(std::atomic<std::uint64_t>& counter) {
    if constexpr (kConfig.count_all_calls) Count(counter);
  }

  // Without a system: no call can reach further than its magazines.
  static constinit Heap no_heap_;
  // Of threads whose exit hook has run.
  static constinit Heap exited_heap_;
  // Of threads that take the slow path for every call, because one of their
  // next allocations is to be guarded.
  static constinit Heap waiting_heap_;
  // What a thread knows of its samples.
  struct Sampling {
    Heap* heap = nullptr;  // the thread's, last seen
    bool serving = false;  // the heap is to serve what is not to be guarded
    OwnStack own_stack;
  };
  static constinit inline thread_local Sampling sampling_
      HAK_TLS_INITIAL_EXEC = {};
  // What the calling thread's last call that returned null leaves for Resolve.
  static constinit inline thread_local RefusedCall refused_
      HAK_TLS_INITIAL_EXEC = {};

  const Host& host_;
  Ace ace_;
  HeapRegistry<kConfig> registry_;
  GuardedBlocks guards_;
  // HAKMEM_GUARD_SAMPLE; HAKMEM_UNWIND. Written by Start.
  std::uint64_t guard_sample_ = 0;
  Unwinding unwinding_ = Unwinding::kFrames;
  FailureRing failures_;
  FutexLock start_lock_;
  std::atomic<bool> started_{false};  // written under start_lock_
  // Started, and slow paths have nothing to do but to serve: nothing is
  // sampled. Written under start_lock_.
  std::atomic<bool> plain_{false};
  std::uint64_t max_alloc_bytes_ = 0;
  // Written once, at the start.
  CanarySecret canary_secret_;
  bool check_kinds_ = true;
  // A block once stayed in place though its new size has a smaller class, or
  // fewer pages, because no memory was left, or the kernel took none back; from
  // then on sized frees may name that size.
  std::atomic<bool> shrunk_in_place_{false};
  CallCounters counters_;
};

template <const Config& kConfig>
constinit ThreadHeap<kConfig> Allocator<kConfig>::no_heap_{nullptr, kNoHeapId};
template <const Config& kConfig>
constinit ThreadHeap<kConfig> Allocator<kConfig>::exited_heap_{nullptr,
                                                               kNoHeapId};
template <const Config& kConfig>
constinit ThreadHeap<kConfig> Allocator<kConfig>::waiting_heap_{nullptr,
                                                                kNoHeapId};

}  // namespace hakmem

#include "allocator/core/allocator_calls.h"  // IWYU pragma: export
#include "allocator/core/allocator_hot.h"    // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
