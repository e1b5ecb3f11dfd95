// The allocator: every call of the C and C++ interfaces comes down to one of
// these functions.
//
// Owns: ACE, all heaps, upkeep; the parts at its side: allocator_parts.h.
// Called by: frontend, tests, fuzzers; who compiles it includes
// allocator_whole.h.
// Thread-safety: any thread, each with its own `self`.
//
// The path of a call (hot: allocator_hot.h; slow: allocator_slow.h):
//   TryAllocate   class by table → magazine pop → mark Live
//     AllocateSlow   attach a heap · magazine refill (ThreadHeap) · slab from
//                    ACE; a span or Huge block (LargeBlocks)
//       Recover      a guarded block gets its stack (GuardedBlocks) · what was
//                    refused is tried again after reclaiming, and becomes one
//                    event (Recovery)
//   Free       range and alignment by one comparison → header and unit record
//              by one comparison → mark Free → magazine push
//     TryFreeRemote  another heap's block: header and record as before → mark
//                    Queued by one exchange → outbox
//     FreeOther      a block of a thread without a heap · span · Huge block ·
//                    misuse
// Hardened variants do more at each of these steps: hardening.h.
// `self` is the calling thread's heap pointer; it starts as NoHeap(). Slow
// paths attach a heap to it.
//
// Invariants: those of the layers below (CheckInvariants checks them all).
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/core/call_counters.h"
#include "allocator/core/call_result.h"
#include "allocator/core/hardening.h"
#include "allocator/core/heap_of_thread.h"
#include "allocator/core/host.h"
#include "allocator/core/large_blocks.h"
#include "allocator/core/sampled_heap.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/process/futex_lock.h"
#include "allocator/reports/block_report.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

struct FailedCall;
struct HeapCheckCursor;
class HeapProfile;
struct LiveBlock;
class Recovery;
class GuardedBlocks;

template <const Config& kConfig>
struct StatisticsDescription;

template <const Config& kConfig>
struct AllocatorParts;
template <const Config& kConfig>
class Upkeep;

template <const Config& kConfig>
class Allocator {
 public:
  using Heap = SampledHeap<kConfig>;
  using Heaps = HeapOfThread<kConfig>;
  using Hooks = HardeningOf<kConfig>;

  // `parts` (allocator_parts.h) are the allocator's alone, and live as long.
  constexpr Allocator(VirtualMemory& memory, const Host& host,
                      AllocatorParts<kConfig>& parts)
      : host_(host),
        ace_(memory, parts.ace),
        registry_(ace_),
        guards_(parts.guards),
        profile_(parts.profile),
        hardening_(ace_, guards_),
        heaps_(host, registry_),
        large_(ace_, hardening_, counters_),
        recovery_(parts.recovery),
        upkeep_(*this) {}
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // The least that a block has beyond what was asked for.
  static constexpr std::size_t kSlackBytes = Hooks::kSlackBytes;
  // Sizes below these are Tiny's, and Pool's.
  static constexpr std::size_t kTinyEnd = kMaxTinyBytes + 1 - kSlackBytes;
  static constexpr std::size_t kPoolEnd = kMaxPoolBytes + 1 - kSlackBytes;
  // The smallest size that hot paths serve.
  static constexpr std::size_t kLeastBytes = Hooks::ServesSize(0) ? 0 : 1;

  // The first value of a thread's heap pointer.
  static constexpr Heap* NoHeap() { return Heaps::None(); }
  // Reads the options and places the region, if no call has done so yet.
  void EnsureStarted() {
    // acquire: pairs with the release in Start.
    if (!started_.load(std::memory_order_acquire)) [[unlikely]]
      Start();
  }

  // For walks over all blocks, and tests that damage their tables.
  constexpr Ace& ace() { return ace_; }
  Recovery& recovery() { return recovery_; }
  GuardedBlocks& guards() {
    EnsureStarted();
    return guards_;
  }
  HeapProfile& profile() { return profile_; }
  Upkeep<kConfig>& upkeep() {
    EnsureStarted();
    return upkeep_;
  }

  // --- Blocks whose type the program tells, where types are separate.

  // The thread's heap of a token's partition; null: it has none yet.
  HAK_ALWAYS_INLINE Heap* HeapOfToken(Heap* heap, std::uint64_t token) const {
    const Partition partition = partitions_.Of(token);
    return partition == 0 ? heap
                          : static_cast<Heap*>(heap->siblings().Of(partition));
  }
  // A block of that partition, by the slow path. Null: the call without a token
  // is to be made. `frame`: see Recover.
  HAK_NOINLINE void* AllocateTyped(Heap*& self, std::uint64_t token,
                                   std::size_t alignment_bytes,
                                   std::size_t size_bytes, BlockKind kind,
                                   const void* frame, bool zeroed = false);

  // --- Calls in parts, as only the end of a failing one may know which
  // function the program called. A result that is not plain goes to Recover,
  // and what follows it. errno is not touched.

  HAK_ALWAYS_INLINE CallResult AllocateOnce(Heap*& self,
                                            std::size_t size_bytes);
  // The hot part of AllocateOnce, which calls nothing. Null: ask AllocateSlow.
  // Sizes from `tiny_end` on take the path of Pool blocks, from `pool_end` on
  // the slow one; lower ends than these leave more to the slow one.
  HAK_ALWAYS_INLINE void* TryAllocate(Heap* heap, std::size_t size_bytes,
                                      std::size_t tiny_end = kTinyEnd,
                                      std::size_t pool_end = kPoolEnd,
                                      BlockKind kind = BlockKind::kMalloc);
  // The part of it for a Pool block, where that is a function of its own.
  HAK_NOINLINE void* TryPoolCache(Heap* heap, std::size_t size_bytes,
                                  BlockKind kind);
  // The block's kind, for what AllocateSlow and those below it hand out.
  HAK_NOINLINE void SetKind(void* block, BlockKind kind) {
    hardening_.SetKind(block, kind);
  }
  // For sizes that no slab serves. Null: ask AllocateSlow.
  HAK_ALWAYS_INLINE void* TryAllocateLarge(Heap* heap, std::size_t size_bytes) {
    return large_.TryAllocate(heap, size_bytes);
  }
  HAK_NOINLINE CallResult AllocateSlow(Heap*& self, std::size_t size_bytes,
                                       std::size_t alignment_bytes);
  // The same for zeroed blocks.
  HAK_ALWAYS_INLINE void* TryAllocateZeroed(Heap* heap, std::size_t count,
                                            std::size_t size_bytes);
  HAK_NOINLINE CallResult AllocateZeroedSlow(Heap*& self, std::size_t count,
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
  HAK_ALWAYS_INLINE bool TryReallocate(Heap* heap, void* pointer,
                                       std::size_t size_bytes, unsigned& code);
  HAK_ALWAYS_INLINE CallResult ReallocateSlow(Heap*& self, void* pointer,
                                              std::size_t size_bytes,
                                              unsigned code);

  // --- The cold end of a call whose result is not plain.

  // Gives a guarded or sampled block its stack. Else reclaims, asks the program
  // for memory, tries again, and begins the event of the call. The block, or
  // null, which leaves the event unfinished, to be tried again or finished
  // (Recovery). `frame`: see FailureReporter.
  HAK_COLD void* Recover(Heap*& self, const Request& request,
                         const CallResult& got, const void* frame,
                         FailedCall& failed);
  HAK_COLD void* TryAgain(Heap*& self, FailedCall& failed);

  // --- Freeing.

  // TryFree's findings on a pointer that it left alone.
  struct NotOwn {
    // The headers of its zone; null: it is in none that has slabs.
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
  // Takes a live block of another heap, or frees a span. False: it was
  // neither, or is to be looked at, and nothing was done; ask FreeOther.
  HAK_ALWAYS_INLINE bool TryFreeRemote(Heap* heap, void* pointer, NotOwn found,
                                       BlockKind kind = BlockKind::kMalloc);
  HAK_NOINLINE void FreeOther(Heap*& self, void* pointer,
                              BlockKind kind = BlockKind::kMalloc);
  // FreeOther for a pointer that is in no zone of slabs. `frame`: see
  // FailureReporter.
  HAK_COLD void FreeOutside(Heap*& self, void* pointer, BlockKind kind,
                            const void* frame);
  // As TryFree; a size or alignment that the block cannot have been asked for
  // with is a misuse, too. False: nothing was done; ask MayFreeSized, and then
  // Free. Sizes beyond `most_bytes`, which is below kTinyEnd, are not its
  // business.
  HAK_ALWAYS_INLINE bool TryFreeSized(Heap* heap, void* pointer,
                                      std::size_t size_bytes,
                                      std::size_t alignment_bytes,
                                      std::size_t most_bytes,
                                      BlockKind kind = BlockKind::kMalloc);
  // The checks of a sized free. True: Free does the rest. False: the block was
  // a sibling's and is free, or is to be left alone.
  HAK_ALWAYS_INLINE bool MayFreeSized(Heap*& self, void* pointer,
                                      std::size_t size_bytes,
                                      std::size_t alignment_bytes,
                                      BlockKind kind);
  // The bytes that may be used; null has 0, and so has a misuse.
  std::size_t UsableSize(Heap*& self, const void* pointer);

  // --- For callers that know of rounded sizes (allocator_rounded.h).

  // The usable size of each fresh block of such a request, at least; exact
  // where no block is guarded. 0 if no route serves it.
  HAK_COLD std::size_t UsableSizeFor(std::size_t size_bytes,
                                     std::size_t alignment_bytes);
  // For a sized free: a size that the block was asked for with, if the given
  // one lies between it and what UsableSize or UsableSizeFor tell of it. Else
  // the given one.
  HAK_COLD std::size_t AskedSize(const void* pointer, std::size_t size_bytes,
                                 std::size_t alignment_bytes);
  // Zero up to its usable size; aligned to a power of two.
  HAK_COLD CallResult AllocateCleared(Heap*& self, std::size_t size_bytes,
                                      std::size_t alignment_bytes);
  // Whether the block may be given another size, or place. False: it is none,
  // or damaged, which was reported.
  HAK_COLD bool MayReallocate(Heap* self, const void* pointer,
                              LiveBlock& block);
  // Whether a block that is aligned so may be what such a request gets: a sized
  // free with it would be right.
  HAK_COLD bool Suits(const void* pointer, const LiveBlock& block,
                      std::size_t size_bytes, std::size_t alignment_bytes);

  // --- The life of threads and processes.

  // The thread exits (or goes on: what it allocates later is served without a
  // heap of its own).
  void Detach(Heap*& self) {
    EnsureStarted();
    heaps_.Detach(self);
  }
  // Around a fork, on the thread that forks: between PrepareFork and one of the
  // others, every lock is held.
  HAK_COLD void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  HAK_COLD void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  HAK_COLD void ChildAfterFork(Heap*& self);

  // Only while no other thread is inside.
  void CheckInvariants();
  // At any time: the layers' invariants, and in variants that keep bounds every
  // live block's canary and every free block's fill; reports the first damaged
  // block and returns how many there are. See hakmem.h.
  HAK_COLD std::size_t CheckHeap(Heap*& self);
  // The blocks alone; from `place` on, by so much as the helper thread can do
  // without being noticed. Null: all of them, or for kExitCheck the first.
  HAK_COLD std::size_t CheckBlocks(
      Heap* self, HeapCheckCursor* place,
      PointerUse use = PointerUse::kBackgroundCheck);

 private:
  friend StatisticsDescription<kConfig>;
  friend Upkeep<kConfig>;

  class Server;

  // The view of the zone of Tiny blocks, or of Pool blocks.
  template <bool kTiny>
  ZoneView& View() {
    return (kTiny ? ace_.region().fine() : ace_.region().coarse()).view();
  }

  HAK_COLD void Start();
  template <bool kTiny>
  HAK_ALWAYS_INLINE void* TryCache(typename Heap::ClassCache& cache,
                                   std::size_t size_bytes, BlockKind kind);
  void* TryClass(Heap*& self, SizeClass size_class, std::size_t size_bytes,
                 Refusal& refusal);
  CallResult AllocateClass(Heap*& self, SizeClass size_class,
                           std::size_t size_bytes, Refusal& refusal);
  HAK_COLD CallResult AllocateAtEnd(Heap*& self, SizeClass size_class,
                                    std::size_t size_bytes,
                                    std::size_t alignment_bytes);
  HAK_COLD CallResult AllocateCoarse(Heap*& self, SizeClass size_class,
                                     std::size_t size_bytes,
                                     const Refusal& refusal);

  template <bool kTiny>
  HAK_ALWAYS_INLINE bool FreeOwn(std::uint64_t granule, Heap* heap,
                                 void* pointer, NotOwn& found, BlockKind kind);
  HAK_ALWAYS_INLINE bool TryFreePool(Heap* heap, void* pointer, NotOwn& found,
                                     BlockKind kind);
  template <bool kTiny>
  HAK_ALWAYS_INLINE void Push(Heap* heap, typename Heap::ClassCache& cache,
                              std::atomic<HeaderByte>& header, void* block,
                              std::size_t code);
  void FreeSlabBlock(Heap*& self, void* pointer, const LiveBlock& block,
                     BlockKind kind);
  // Reports a block of a slab that somebody else has freed meanwhile.
  HAK_COLD void FailFreedAtOnce(Heap* heap, const void* pointer,
                                SizeClass size_class, HeapId owner,
                                HeaderByte found);

  HAK_ALWAYS_INLINE bool Require(Heap* self, const void* pointer,
                                 PointerUse use, LiveBlock& block);
  HAK_COLD bool RequireGuarded(Heap* self, const void* pointer, PointerUse use,
                               LiveBlock& block);
  HAK_NOINLINE std::size_t UsableSizeSlow(Heap* self, const void* pointer);

  HAK_NOINLINE CallResult MoveTo(Heap*& self, void* pointer,
                                 std::size_t old_bytes, std::size_t size_bytes);
  HAK_COLD CallResult StayIfSmaller(Heap* self, void* pointer,
                                    std::size_t size_bytes, CallResult refused);
  CallResult MoveOther(Heap*& self, void* pointer, const LiveBlock& block,
                       std::size_t size_bytes);
  HAK_ALWAYS_INLINE bool FreeOfSibling(Heap* heap, void* pointer, NotOwn found,
                                       BlockKind kind);
  template <bool kTiny>
  HAK_NOINLINE bool FreeIn(std::uint64_t granule, Heap* heap, void* pointer,
                           BlockKind kind) {
    NotOwn found;
    return FreeOwn<kTiny>(granule, heap, pointer, found, kind);
  }
  HAK_NOINLINE bool FreeSizedOfSibling(Heap* heap, void* pointer,
                                       std::size_t size_bytes,
                                       std::size_t alignment_bytes,
                                       BlockKind kind);
  HAK_NOINLINE CallResult ReallocateOther(Heap*& self, void* pointer,
                                          std::size_t size_bytes);

  const Host& host_;
  Ace ace_;
  HeapRegistry<kConfig, SampledHeap<kConfig>> registry_;
  GuardedBlocks& guards_;
  HeapProfile& profile_;
  [[no_unique_address]] Hooks hardening_;
  CallCounters counters_;
  Heaps heaps_;
  LargeBlocks<kConfig> large_;
  Recovery& recovery_;
  Upkeep<kConfig> upkeep_;
  PartitionTable partitions_;  // written under start_lock_, once
  FutexLock start_lock_;
  std::atomic<bool> started_{false};  // written under start_lock_
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_H_
