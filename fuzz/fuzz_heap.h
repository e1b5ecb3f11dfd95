// An allocator on a fake kernel, and a model beside it: each call is carried
// out on both, and every difference ends the process.
//
// Owns: both, and the heap pointers that stand for threads. Called by: fuzz
// targets. Thread-safety: none.
//
// A call that returns null must have left exactly one event, any other at most
// one. `usable` is what UsableSize says, at least what was asked for; nothing
// is ever written beyond what was asked for.
#ifndef HAKMEM_FUZZ_FUZZ_HEAP_H_
#define HAKMEM_FUZZ_FUZZ_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/heap_check.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/core/typed_blocks.h"
#include "allocator/lookup/block_walk.h"
#include "allocator/lookup/lookup.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "fuzz/fuzz_partitions.h"
#include "fuzz/records.h"

namespace hakmem {

template <const Config& kConfig>
class FuzzHeap {
 public:
  using Heap = typename TestedAllocator<kConfig>::Heap;
  static constexpr unsigned kThreads = 4;
  // More is not asked for; what is refused by this counts as done.
  static constexpr std::size_t kMostLiveBytes = 24 * kMiB;

  explicit FuzzHeap(const HeapOptions& options)
      : test_(options),
        kinds_matter_(options.check_kinds != 0),
        // What a thread that waits for a sample waits with is the real
        // thread's.
        threads_used_(options.guard_sample == 0 ? kThreads : 1) {
    for (Heap*& thread : threads_) thread = test_.NewThread();
  }

  TestedAllocator<kConfig>& allocator() { return *test_.allocator; }
  FakeVirtualMemory& memory() { return test_.memory; }
  const ModelHeap& model() const { return model_; }
  Heap*& thread(unsigned who) { return threads_[who % threads_used_]; }
  bool full() const { return model_.live_bytes() > kMostLiveBytes; }
  // Any live block; null when there is none.
  void* Pick(std::size_t number) const {
    return model_.empty() ? nullptr : model_.Pick(number);
  }

  void* Allocate(unsigned who, std::size_t size) {
    return Take(who, size, kMinAlignmentBytes,
                [&] { return allocator().Allocate(thread(who), size); });
  }
  void* AllocateZeroed(unsigned who, std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(count, size, &bytes);
    void* block = Take(
        who, bytes, kMinAlignmentBytes,
        [&] { return allocator().AllocateZeroed(thread(who), count, size); },
        bytes);
    HAK_CHECK(!overflow || block == nullptr);
    return block;
  }
  void* AllocateAligned(unsigned who, std::size_t alignment, std::size_t size) {
    return Take(who, size, alignment, [&] {
      return allocator().AllocateAligned(thread(who), alignment, size);
    });
  }
  // Zero up to its usable size.
  void* AllocateCleared(unsigned who, std::size_t alignment, std::size_t size) {
    return Take(
        who, size, alignment,
        [&] {
          return allocator().Resolve(
              thread(who),
              {.call = Call::kMallocx,
               .kind = Request::Kind::kCleared,
               .size_bytes = size,
               .alignment_bytes = alignment},
              allocator().AllocateCleared(thread(who), size, alignment));
        },
        kAllZero);
  }
  // Of a token's partition, where there are any.
  void* AllocateTyped(unsigned who, std::uint64_t token, std::size_t alignment,
                      std::size_t size, BlockKind kind = BlockKind::kMalloc,
                      bool zeroed = false) {
    void* block = Take(
        who, size, alignment,
        [&] {
          return allocator().AllocateWithToken(thread(who), token, alignment,
                                               size, kind, zeroed);
        },
        zeroed ? size : 0);
    if (block == nullptr) return nullptr;
    model_.SetKind(block, kind);
    partitions_.CheckNew(
        allocator(), token, block,
        /*may_be_untyped=*/runs_short_ || memory().refused() != 0 ||
            allocator().HeapOfToken(thread(who), token) == nullptr);
    return block;
  }
  // Memory may be refused by others than the kernel.
  void MayRunShort() { runs_short_ = true; }
  // The frontend's way to a block: the call in parts.
  void* AllocateInParts(unsigned who, std::size_t size) {
    return Take(who, size, kMinAlignmentBytes, [&]() -> void* {
      Heap*& self = thread(who);
      const CallResult got = allocator().AllocateOnce(self, size);
      if (got.outcome.plain()) return got.block;
      FailedCall failed;
      void* block = allocator().Recover(self,
                                        {.call = Call::kNew,
                                         .size_bytes = size,
                                         .alignment_bytes = kMinAlignmentBytes},
                                        got, nullptr, failed);
      if (block != nullptr) return block;
      Recovery& recovery = allocator().recovery();
      recovery.Announce(failed);
      block = allocator().TryAgain(self, failed);
      recovery.Finish(failed, block != nullptr
                                  ? Disposition::kServedAfterHandler
                                  : Disposition::kReturnedNull);
      return block;
    });
  }
  void* Reallocate(unsigned who, void* block, std::size_t size) {
    // As Allocator::Reallocate says.
    size = std::max<std::size_t>(size, 1);
    const ModelHeap::Block facts = model_.At(block);
    if (!MayBeUsedAs(facts, BlockKind::kMalloc)) return nullptr;
    const std::size_t usable = facts.usable;
    const Partition partition = PartitionAt(allocator().ace(), block);
    const std::uint64_t before = test_.failures();
    void* moved = allocator().Reallocate(thread(who), block, size);
    CheckEvents(before, moved);
    // Nothing that gets smaller may fail.
    HAK_CHECK(moved != nullptr || size > usable);
    if (moved == nullptr) return nullptr;
    CheckClass(moved);
    partitions_.CheckMoved(allocator(), partition, moved);
    model_.Resize(block, moved, size,
                  allocator().UsableSize(thread(who), moved));
    return moved;
  }
  void Free(unsigned who, void* block) {
    const BlockKind kind = KindToGive(who, model_.At(block));
    model_.Remove(block);
    const std::uint64_t before = test_.failures();
    allocator().Free(thread(who), block, kind);
    HAK_CHECK_EQ(test_.failures(), before);
  }
  void FreeSized(unsigned who, void* block) {
    FreeSizedAs(who, block, model_.At(block).size);
  }
  // With a size that it has, or that nobody checks.
  void FreeSizedAs(unsigned who, void* block, std::size_t size) {
    const ModelHeap::Block facts = model_.At(block);
    model_.Remove(block);
    allocator().FreeSized(thread(who), block, size, facts.alignment,
                          KindToGive(who, facts));
  }
  // With any size from the one that was asked for to the usable one.
  void FreeRounded(unsigned who, void* block, std::size_t number) {
    const ModelHeap::Block facts = model_.At(block);
    const std::size_t given =
        facts.size + number % (facts.usable - facts.size + 1);
    FreeSizedAs(who, block,
                allocator().AskedSize(block, given, facts.alignment));
  }
  void CheckUsable(unsigned who, void* block) {
    const ModelHeap::Block& facts = model_.At(block);
    HAK_CHECK_EQ(allocator().UsableSize(thread(who), block), facts.usable);
    if (!MayBeUsedAs(facts, BlockKind::kMalloc)) return;
    LiveBlock live;
    HAK_CHECK(allocator().MayReallocate(thread(who), block, live));
    HAK_CHECK_EQ(live.size_bytes, facts.usable);
  }
  // The thread ends; another takes its place, or it goes on without a heap.
  void EndThread(unsigned who, bool replaced) {
    allocator().Detach(thread(who));
    if (replaced) thread(who) = test_.NewThread();
  }
  // So many threads at once, each with a heap and a block of its own; half of
  // the blocks are freed by the next thread, and then all threads end.
  void RunCrowd(unsigned count, std::size_t size) {
    if (threads_used_ == 1) return;
    std::vector<Heap*> crowd(count, test_.NewThread());
    std::vector<void*> blocks;
    for (Heap*& self : crowd) {
      std::swap(thread(0), self);
      blocks.push_back(Allocate(0, size));
      std::swap(thread(0), self);
    }
    for (unsigned i = 0; i < count; i += 2) {
      if (blocks[i] == nullptr) continue;
      Heap*& next = crowd[(i + 1) % count];
      std::swap(thread(0), next);
      Free(0, blocks[i]);
      std::swap(thread(0), next);
    }
    for (Heap*& self : crowd) allocator().Detach(self);
  }
  // Some of what the helper thread looks at.
  void LookOn(unsigned who) {
    HAK_CHECK_EQ(allocator().CheckBlocks(thread(who), &place_), 0U);
  }
  // What a fork makes of the process that it makes: all threads but one are
  // gone.
  void BecomeChild(unsigned who) {
    allocator().PrepareFork();
    Heap*& self = thread(who);
    allocator().ChildAfterFork(self);
    for (Heap*& other : threads_) {
      if (&other != &self) other = test_.NewThread();
    }
    blocks_lost_ = true;
  }

  void Check() {
    allocator().CheckInvariants();
    HAK_CHECK_EQ(allocator().CheckHeap(thread(0)), 0U);
    model_.CheckAll();
  }
  // Frees all there is and ends all threads: nothing may be in use.
  void Finish() {
    memory().RefuseNothing();
    memory().LimitBytes(~std::size_t{0});
    memory().LimitMappings(~std::size_t{0});
    memory().LimitBlocks(~std::size_t{0});
    test_handler = nullptr;
    CheckWalk();
    for (unsigned i = 0; !model_.empty(); ++i) Free(i, model_.Pick(i));
    for (Heap*& thread : threads_) allocator().Detach(thread);
    Heap* last = test_.NewThread();
    // Before what was freed is given back.
    HAK_CHECK_EQ(allocator().CheckHeap(last), 0U);
    allocator().upkeep().Purge(last);
    // What is not live is no live sample.
    HAK_CHECK_EQ(allocator().profile().Totals().live.samples, 0U);
    // A span that a move lost is nobody's for ever.
    if (!blocks_lost_ && memory().lost() == 0) {
      HAK_CHECK_EQ(allocator().upkeep().Snapshot().granted_bytes, 0U);
    }
    allocator().CheckInvariants();
  }

 private:
  static constexpr std::size_t kAllZero = ~std::size_t{0};

  bool MayBeUsedAs(const ModelHeap::Block& facts, BlockKind kind) const {
    return !kConfig.check_kinds || !kinds_matter_ || facts.kind == kind;
  }
  // Any one will do where kinds do not matter.
  BlockKind KindToGive(unsigned number, const ModelHeap::Block& facts) const {
    const BlockKind other = KindOf(number / kThreads);
    return MayBeUsedAs(facts, other) ? other : facts.kind;
  }
  // Leak reports name the model's blocks, and no others.
  void CheckWalk() {
    struct Walk {
      const ModelHeap& model;
      std::size_t count;
    } walk = {model_, 0};
    VisitLiveBlocks(
        allocator().ace(),
        [](void* context, const void* start, const LiveBlock& block) {
          auto& seen = *static_cast<Walk*>(context);
          HAK_CHECK_EQ(seen.model.At(start).usable, block.size_bytes);
          ++seen.count;
        },
        &walk);
    for (const auto& [address, facts] : model_.blocks()) {
      LiveBlock block;
      const bool found = FindLiveBlock(
          allocator().ace(), reinterpret_cast<const void*>(address), block);
      // The others are guarded.
      HAK_CHECK(found || threads_used_ == 1);
      if (found && !block.empty) --walk.count;
    }
    HAK_CHECK_EQ(walk.count, 0U);
  }
  // Where classes are separate, a unit is of one size class, or of spans of one
  // length, for ever.
  void CheckClass([[maybe_unused]] const void* block) {
    if constexpr (kConfig.separate_classes) {
      LiveBlock live;
      if (!FindLiveBlock(allocator().ace(), block, live) || live.empty ||
          live.route == Route::kHuge) {
        return;
      }
      std::uint32_t units = 1;
      std::uint32_t owner = live.size_class;
      if (live.route == Route::kSpan) {
        units = DescriptorOf(allocator().ace().region().coarse(), live.unit)
                    .span_units;
        owner = kClassCount + units;
      }
      Address unit = RoundDown(reinterpret_cast<Address>(block), kUnitBytes);
      for (std::uint32_t i = 0; i < units; ++i, unit += kUnitBytes) {
        HAK_CHECK_EQ(owners_.emplace(unit, owner).first->second, owner);
      }
    }
  }
  void CheckEvents(std::uint64_t before, const void* block) const {
    const std::uint64_t events = test_.failures() - before;
    HAK_CHECK_LE(events, 1U);
    HAK_CHECK(block != nullptr || events == 1);
  }
  template <typename F>
  void* Take(unsigned who, std::size_t size, std::size_t alignment, F call,
             std::size_t zero_bytes = 0) {
    const std::uint64_t before = test_.failures();
    void* block = call();
    CheckEvents(before, block);
    if (block == nullptr) return nullptr;
    const std::size_t usable = allocator().UsableSize(thread(who), block);
    ModelHeap::CheckZero(block, std::min(zero_bytes, usable));
    CheckClass(block);
    model_.Add(block, size, alignment, usable);
    return block;
  }

  TestAllocator<kConfig> test_;
  const bool kinds_matter_;
  const unsigned threads_used_;
  Heap* threads_[kThreads];
  ModelHeap model_;
  // By a unit's address.
  std::unordered_map<Address, std::uint32_t> owners_;
  HeapCheckCursor place_;
  FuzzPartitions<kConfig> partitions_;
  bool runs_short_ = false;
  bool blocks_lost_ = false;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_FUZZ_HEAP_H_
