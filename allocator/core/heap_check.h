// The check of the whole heap, at once for a program that asks, or bit by bit
// for the helper thread: every live block's canary, every free block's fill,
// and memory that is nobody's.
//
// Owns: nothing. Called by: Allocator, in variants that keep bounds.
// Thread-safety: any thread, while others allocate and free. Blocks are read
// while their threads may write to them; what was read counts if the header was
// the same before and after, and again some milliseconds later.
#ifndef HAKMEM_ALLOCATOR_CORE_HEAP_CHECK_H_
#define HAKMEM_ALLOCATOR_CORE_HEAP_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/block_canary.h"
#include "allocator/heap/heap_system.h"
#include "allocator/reports/block_report.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Damage of a block: a byte that was written and should not be.
struct BlockDamage {
  const void* block = nullptr;  // null: nothing
  bool live = false;
  std::size_t at_bytes = 0;
};

// Where a check that goes on bit by bit is.
struct HeapCheckCursor {
  static constexpr unsigned kParts = 3;

  unsigned part = 0;   // a zone, or behind them the Huge blocks
  UnitIndex unit = 0;  // of the zone
  Address huge = 0;    // the last one that was looked at
};

class HeapCheck {
 public:
  // `clear_bytes`: so much of each free block's beginning is left clear.
  // What is in torn heaps (HeapSystem::last_torn), or may be older than the
  // fork, is not judged.
  HeapCheck(const HeapSystem& heaps, const CanarySecret& secret,
            std::uint64_t clear_bytes)
      : ace_(heaps.ace),
        heaps_(heaps),
        secret_(secret),
        clear_bytes_(clear_bytes),
        last_torn_(heaps.last_torn.load(std::memory_order_relaxed)) {}

  // Reports the first damaged block and returns how many there are. `call` says
  // who asks.
  std::size_t Run(BlockReport call);
  // The same of the next `steps` units and Huge blocks, to the heap's end or
  // the first damaged block at most, and of pages that are in memory alone: a
  // look brings none there.
  std::size_t RunOn(BlockReport call, HeapCheckCursor& place,
                    std::uint32_t steps);
  // The same of the first `steps` of the coarse zone and of the Huge blocks,
  // and a quarter of the fine one, where a unit has most blocks. On a thread
  // that may be in the middle of anything; a heap that stays locked is left
  // out.
  std::size_t RunAtEnd(BlockReport call, std::uint32_t steps);

 private:
  // A block that another thread is handing out, freeing or resizing tells so
  // (hardening.h, HD3). But it may have begun to after its state was read, and
  // it takes a moment until all that a thread wrote is seen; so a block is
  // damaged that looks so as often as this, and once before.
  static constexpr unsigned kDamageLooks = 10;
  // A slab is at most half a SuperSlab.
  static constexpr std::size_t kMaxPages = kSuperSlabBytes / 2 / (4 * kKiB);

  // Which pages of a range that begins at one are to be looked at.
  class Pages {
   public:
    Pages(Ace& ace, Address begin, std::size_t bytes, bool resident_only);
    bool Has(Address address, std::size_t bytes) const;
    // The offset of the first byte there that is not zero; `bytes`: none.
    std::size_t FirstNonZero(Address begin, std::size_t bytes) const;

   private:
    Address begin_;
    std::size_t page_bytes_;
    bool all_;
    unsigned char resident_[kMaxPages];
  };

  bool Hold(HeapId owner);
  // False: that was all.
  bool Step(HeapCheckCursor& place);
  BlockDamage LookAt(const Zone& zone, Address address, UnitRecord record,
                     std::size_t block_bytes, const Pages& pages) const;
  BlockDamage LookBehind(const Zone& zone, Address address,
                         std::size_t block_bytes, const Pages& pages) const;
  void CheckLarge(Address start);
  void CheckLargeTogether();
  BlockDamage LookAtLarge(const void* start);
  template <typename Look>
  void CheckTogether(std::uint64_t* suspects, std::uint32_t count,
                     const Look& look);
  void CheckUnit(const Zone& zone, UnitIndex unit, UnitRecord record);
  Address WrittenSinceRelease(const Zone& zone, UnitIndex unit);
  void CheckReleased(const Zone& zone, UnitIndex unit);
  void ReportDamage(BlockReport report);

  Ace& ace_;
  const HeapSystem& heaps_;
  const CanarySecret& secret_;
  const std::uint64_t clear_bytes_;
  const HeapId last_torn_;
  bool resident_only_ = false;
  bool at_end_ = false;
  unsigned waits_left_ = kDamageLooks;   // for heaps' locks; at the end alone
  const void* last_released_ = nullptr;  // that was found damaged
  std::size_t damaged_blocks_ = 0;
  BlockDamage first_;
  // Spans and Huge blocks that looked damaged once.
  static constexpr std::uint32_t kMostLarge = 64;
  std::uint32_t large_count_ = 0;
  Address large_[kMostLarge];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_HEAP_CHECK_H_
