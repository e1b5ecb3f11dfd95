// Heaps for tests: what core does with them, without core.
//
// Owns: a fake kernel, ACE and a registry of heaps. Called by: tests of heap.
// Thread-safety: any thread, each with a heap of its own.
#ifndef HAKMEM_ALLOCATOR_HEAP_TEST_HEAPS_H_
#define HAKMEM_ALLOCATOR_HEAP_TEST_HEAPS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/test_variant.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/heap/heap_system.h"
#include "allocator/heap/thread_heap_slow.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {

// What becomes of unsound blocks, in place of core's reports.
inline bool g_leaves_unsound_blocks = false;
inline unsigned g_unsound_blocks = 0;
inline void NoteUnsoundBlock(const UnsoundBlock& found) {
  ++g_unsound_blocks;
  if (g_leaves_unsound_blocks) return;
  const auto address = reinterpret_cast<Address>(found.block);
  const HeapId owner =
      UnitOwner(found.zone->unit_record(found.zone->UnitOf(address))
                    .load(std::memory_order_relaxed));
  std::fprintf(stderr, "unsound: header %d, %s, heap %d's, found by heap %d\n",
               found.found, found.was_queued ? "queued" : "free",
               static_cast<int>(owner), static_cast<int>(found.heap));
  std::abort();
}

template <const Config& kConfig>
class TestHeaps {
 public:
  using Heap = ThreadHeap<kConfig>;

  explicit TestHeaps(const HeapOptions& options = HeapOptions()) {
    ace_.Start(options);
    registry_.Start(options, &NoteUnsoundBlock);
  }

  FakeVirtualMemory& memory() { return memory_; }
  Ace& ace() { return ace_; }
  HeapRegistry<kConfig>& registry() { return registry_; }
  Heap& Attach() {
    VmStatus status;
    Heap* heap = registry_.Attach(status);
    HAK_CHECK(heap != nullptr);
    return *heap;
  }

  // A live block, or null.
  void* Allocate(Heap& heap, SizeClass size_class) {
    constexpr std::uint32_t kCalls = AllocationCount::kInterval;
    auto& cache = heap.Cache(size_class);
    void* block = heap.TryPop(cache);
    if (block == nullptr) {
      if (cache.allocations.is_over()) heap.EndCountdown(size_class, kCalls);
      block = heap.TryPop(cache);
    }
    Refusal refusal;
    if (block == nullptr) {
      cache.allocations.Wind(kCalls);
      block = heap.Allocate(size_class, refusal);
    }
    if (block == nullptr) return nullptr;
    return MarkLive(block, size_class);
  }
  void* AllocateDirect(Heap& heap, SizeClass size_class) {
    Refusal refusal;
    void* block = heap.AllocateDirect(size_class, refusal);
    return block == nullptr ? nullptr : MarkLive(block, size_class);
  }
  std::vector<void*> Allocate(Heap& heap, SizeClass size_class,
                              std::size_t count) {
    std::vector<void*> blocks(count);
    for (void*& block : blocks) {
      block = Allocate(heap, size_class);
      HAK_CHECK(block != nullptr);
    }
    return blocks;
  }

  // On the thread of `heap`, whichever heap owns the block.
  void Free(Heap& heap, void* block) {
    const UnitRecord record = RecordOf(block);
    const unsigned code = HeaderCode(UnitLiveHeader(record));
    const auto size_class = static_cast<SizeClass>(code - 1);
    HAK_CHECK_EQ(HeaderOf(block).load(std::memory_order_relaxed),
                 UnitLiveHeader(record));
    if (UnitOwner(record) != heap.id()) {
      SetHeader(block, BlockState::kQueued);
      heap.FreeRemote(size_class, block);
      return;
    }
    SetHeader(block, BlockState::kFree);
    if (!heap.TryPush(heap.Cache(size_class), block))
      heap.FreeSlow(block, &heap, heap.Cache(size_class));
  }
  void Free(Heap& heap, const std::vector<void*>& blocks) {
    for (void* block : blocks) Free(heap, block);
  }

  const Zone& ZoneOf(const void* block) {
    const Region& region = ace_.region();
    const auto address = reinterpret_cast<Address>(block);
    return region.fine().Contains(address) ? region.fine() : region.coarse();
  }
  std::atomic<HeaderByte>& HeaderOf(const void* block) {
    return ZoneOf(block).header(reinterpret_cast<Address>(block));
  }
  BlockState StateOf(const void* block) {
    return HeaderState(HeaderOf(block).load(std::memory_order_relaxed));
  }
  void SetHeader(const void* block, BlockState state) {
    const unsigned code = HeaderCode(UnitLiveHeader(RecordOf(block)));
    HeaderOf(block).store(MakeHeader(state, code), std::memory_order_relaxed);
  }
  UnitRecord RecordOf(const void* block) {
    const Zone& zone = ZoneOf(block);
    return zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(block)))
        .load(std::memory_order_relaxed);
  }

  Statistics Snapshot() {
    Statistics statistics;
    StatisticSum sum(statistics);
    registry_.AddTo(sum);
    ace_.AddStatistics(statistics);
    // Of both zones.
    statistics.tiny.allocations += statistics.pool.allocations;
    return statistics;
  }
  std::uint64_t GrantedBytes() { return Snapshot().granted_bytes; }
  std::uint64_t HeapMetadataBytes() {
    Statistics statistics;
    StatisticSum sum(statistics);
    registry_.AddTo(sum);
    return statistics.metadata_bytes;
  }
  // Maps memory for blocks, so that later grants need no kernel.
  void MapAhead(std::uint32_t frames) {
    const std::uint32_t units = frames * kUnitsPerSuperSlab;
    ace_.ReleaseSpan(ace_.GrantSpan(units, kUnitBytes).first, units);
    std::vector<UnitIndex> slabs;
    for (std::uint32_t i = 0; i < 2 * frames; ++i) {
      slabs.push_back(ace_.GrantSlab(/*fine=*/true, {16, 16}).first);
    }
    for (const UnitIndex slab : slabs) ace_.ReleaseSlab(true, {16}, slab);
  }
  void CheckInvariants() {
    registry_.CheckInvariants();
    ace_.CheckInvariants();
  }

 private:
  void* MarkLive(void* block, SizeClass size_class) {
    const HeaderByte header = HeaderOf(block).load(std::memory_order_relaxed);
    HAK_CHECK_EQ(header, MakeHeader(BlockState::kFree, size_class + 1U));
    SetHeader(block, BlockState::kLive);
    return block;
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  WholeAce ace_{memory_, &ranges_};
  HeapRegistry<kConfig> registry_{ace_};
};

using ReleaseAndDebug = testing::Types<Variant<kRelease>, Variant<kDebug>>;

// Typed tests by variant, each with heaps and their registry.
template <typename V>
class RegistryTest : public testing::Test {
 protected:
  TestHeaps<V::kConfig> heaps_;
  HeapRegistry<V::kConfig>& registry_ = heaps_.registry();
};

// The same with heaps that can be started anew.
template <typename V>
class HeapsTest : public testing::Test {
 protected:
  using Heaps = TestHeaps<V::kConfig>;
  using Heap = typename Heaps::Heap;

  void Start(std::uint64_t depot_bytes) {
    HeapOptions options;
    options.depot_bytes = depot_bytes;
    heaps_ = std::make_unique<Heaps>(options);
  }

  std::unique_ptr<Heaps> heaps_ = std::make_unique<Heaps>();
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_TEST_HEAPS_H_
