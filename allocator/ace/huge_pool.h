// Huge blocks: each a mapping of its own in the region's huge zone.
//
// Owns: the huge zone's addresses and its tables. Called by: Ace, under its
// lock, which is let go of while the kernel unmaps or moves a block's pages.
// Thread-safety: none of its own.
//
// Blocks are in a list by address. The lowest gap that is long enough has the
// next one, unless it is behind very many. Searches begin at the first gap that
// has room for any block.
//
// Invariants:
//   HU1: the header of a block's first frame is as block_header.h says (H5,
//       H6), and Free from Release on, until the frame is used again. While a
//       block is claimed or unmapped it has its place and is not live.
//   HU2: the list is in address order; blocks and the frame after each are
//       disjoint.
//   HU3: no gap before the one behind the block search_from_ (kNone: before the
//       first block) has room for a block.
#ifndef HAKMEM_ALLOCATOR_ACE_HUGE_POOL_H_
#define HAKMEM_ALLOCATOR_ACE_HUGE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/refusal.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/block_use.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/block_tables.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class HugePool {
 public:
  // `lock` is held when anything is called, but where it says otherwise.
  constexpr HugePool(FutexLock& lock, TouchedPages& pages,
                     VirtualMemory& memory)
      : lock_(lock), pages_(pages), memory_(memory) {}
  HugePool(const HugePool&) = delete;
  HugePool& operator=(const HugePool&) = delete;

  HAK_COLD void Place(const Region& region, std::size_t page_bytes);

  // Maps a zeroed block of `bytes` (a multiple of the page size) at a multiple
  // of `alignment_bytes` (a power of two, at least kSuperSlabBytes).
  BlockGrant Grant(std::size_t bytes, std::size_t alignment_bytes);
  // Unmaps a block that is nobody else's, of which the first `lost_bytes` are
  // not mapped, and returns its length in bytes.
  std::size_t Release(Address address, std::size_t lost_bytes = 0);
  // In the child of a fork: does the same for threads that were at it and are
  // gone.
  HAK_COLD std::size_t EndReleasesAfterFork();
  // Changes the length of a block that is nobody else's, moving its pages if it
  // must; its header goes with it.
  BlockGrant Resize(Address address, std::size_t bytes);

  // In the huge zone, live or not.
  bool Contains(Address address) const {
    return address - window_.begin < window_.bytes;
  }
  // The first live block beyond `address`, or 0.
  HAK_COLD Address NextBlock(Address address) const;

  // --- By the headers, without the lock: what is told of a block is true as
  // long as it is not resized or freed meanwhile.

  // The header of the block that starts at `address`; null: none ever did.
  std::atomic<HeaderByte>* HeaderOf(Address address) const;
  bool IsLive(Address address) const {
    return StateOf(address) == BlockState::kLive;
  }
  // The length of the block that starts here, live or claimed; 0: none does.
  std::size_t BytesOf(Address address) const;
  // The use of a block; zero when just granted, kept by Resize.
  BlockUse& UseOf(Address address) const {
    return records_[FrameOf(address)].use;
  }
  // The block that `address`, in the zone, is in: a live one, or the one that
  // was freed there last. Else the live one that ends a frame before it, or
  // less; a start of 0: there is none.
  struct Found {
    Address start = 0;
    std::size_t bytes = 0;
    bool live = false;
    bool inside = false;
  };
  Found Find(Address address) const;

  std::size_t block_count() const { return block_count_; }
  std::size_t mapped_bytes() const { return mapped_bytes_; }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    VisitTable(header_table_, visit);
    VisitTable(record_table_, visit);
    visit(Statistic::kMapCalls, map_calls_);
    visit(Statistic::kUnmapCalls, unmap_calls_);
    visit(Statistic::kMoveCalls, move_calls_);
  }
  // For readers from outside.
  constexpr HugeTables Describe() const {
    return {.first = &first_,
            .headers = static_cast<const void*>(&headers_),
            .records = static_cast<const void*>(&records_),
            .record_bytes = sizeof(Record),
            .bytes_offset = offsetof(Record, bytes),
            .next_offset = offsetof(Record, next),
            .unused = 0};
  }

  HAK_COLD void CheckInvariants() const;

 private:
  using Frame = std::uint32_t;
  static constexpr Frame kNone = ~Frame{0};
  struct Record {
    Relaxed<std::size_t> bytes;
    Frame next;
    Frame previous;
    BlockUse use;
    const void* releaser;  // the thread that unmaps it (FutexLock::Mark)
    // By that thread, without Ace's lock, too; for a fork's child.
    Relaxed<std::size_t> lost_bytes;
  };

  Frame FrameOf(Address address) const {
    return static_cast<Frame>((address - window_.begin) >> kSuperSlabShift);
  }
  Address AddressOf(Frame frame) const {
    return window_.begin + (static_cast<Address>(frame) << kSuperSlabShift);
  }
  // Of the block that starts there; Free where none ever did.
  BlockState StateOf(Address address) const;
  std::size_t EndRelease(Frame frame);
  void SetBytes(Record& record, std::size_t bytes);
  // The first frame after the block at `frame` and its gap.
  Frame EndOf(Frame frame) const;
  struct Gap {
    Frame begin;  // aligned
    Frame after;  // the live block before it, or kNone
    bool found;
  };
  Gap FindGap(std::size_t bytes, Frame alignment_frames, Frame from);
  // The gap behind a block, or before the first one (kNone).
  Frame GapBegin(Frame before) const {
    return before == kNone ? 0 : EndOf(before);
  }
  Frame Next(Frame before) const {
    return before == kNone ? first_ : records_[before].next;
  }
  std::size_t GapEnd(Frame before) const {
    const Frame next = Next(before);
    return next == kNone ? window_frames() : next;
  }
  // With room for a block of a frame, and the one after it.
  bool HasGap(Frame before) const {
    return GapEnd(before) >= std::size_t{GapBegin(before)} + 2;
  }
  void NoteGap(Frame before);
  // Where a place is looked for.
  struct Search {
    Frame alignment_frames;
    Frame from = 0;
    unsigned tries = 0;
  };
  bool FindPlace(std::size_t bytes, Search& search, Gap& gap, Refusal& refusal);
  void StepOver(Search& search, Frame begin) const;
  void Link(Frame frame, Frame after, std::size_t bytes);
  void Unlink(Frame frame);
  void SetHeader(Frame frame, HeaderByte header) {
    headers_[frame].store(header, std::memory_order_relaxed);
  }
  // False: it is as long as it was.
  bool Grow(Address address, std::size_t bytes);
  BlockGrant MoveTo(Address address, std::size_t bytes);
  void Shrink(Frame frame, std::size_t bytes);
  VmStatus MovePages(Address from, Address to, std::size_t bytes);
  static void Count(std::atomic<std::uint64_t>& calls) {
    calls.fetch_add(1, std::memory_order_relaxed);
  }
  // Without Ace's lock.
  VmStatus UnmapInSlices(Address begin, std::size_t bytes);
  void UnmapOrPurge(Address begin, std::size_t bytes);

  std::size_t window_frames() const { return window_.bytes >> kSuperSlabShift; }

  FutexLock& lock_;
  TouchedPages& pages_;
  VirtualMemory& memory_;
  Region::Window window_;
  MetadataTable header_table_;
  MetadataTable record_table_;
  std::atomic<HeaderByte>* headers_ = nullptr;
  Record* records_ = nullptr;
  Frame first_ = kNone;
  Frame last_ = kNone;
  Frame search_from_ = kNone;
  // Blocks of the list that are neither live nor claimed.
  std::uint32_t changing_ = 0;
  // The longest block there has been. Written under Ace's lock, read by all.
  Relaxed<Frame> longest_frames_;
  std::size_t block_count_ = 0;  // of the list
  std::size_t mapped_bytes_ = 0;
  // Written by any thread, also while Ace's lock is let go of; read by
  // statistics.
  std::atomic<std::uint64_t> map_calls_{0};
  std::atomic<std::uint64_t> unmap_calls_{0};
  std::atomic<std::uint64_t> move_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_HUGE_POOL_H_
