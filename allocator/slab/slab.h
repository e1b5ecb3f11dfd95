// A slab: a run of 1 or 4 units that holds blocks of one class, seen as a
// set of free blocks.
//
// Owns: which blocks are free and not in anyone's magazine. The object lies in
// the unit descriptor of the run's first unit, never beside blocks. Called by:
// heap, under the owning heap's lock.
// Thread-safety: none of its own; capacity() may be asked for by any thread.
//
// Invariants:
//   S1: free_count == number of set bits; no bit at or beyond bump is set.
//   S2: bit w of the summary is set exactly when word w of the bitmap is not 0.
//   S3: bump <= capacity; free_count <= bump.
//   S4: available() == free_count + (capacity - bump).
#ifndef HAKMEM_ALLOCATOR_SLAB_SLAB_H_
#define HAKMEM_ALLOCATOR_SLAB_SLAB_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/slab/block_use.h"
#include "allocator/slab/size_class.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class Slab {
 public:
  // Starts life as a slab of `size_class` with no block handed out.
  // Its last `guard_bytes` are not used.
  void Start(SizeClass size_class, UnitIndex first_unit,
             std::uint32_t guard_bytes = 0);

  SizeClass size_class() const { return size_class_; }
  UnitIndex first_unit() const { return first_unit_; }
  std::uint32_t capacity() const { return capacity_; }
  // Blocks that can be taken.
  std::uint32_t available() const { return free_count_ + (capacity() - bump_); }
  // No block is in a magazine or with the user.
  bool empty() const { return free_count_ == bump_; }
  // Blocks before this index were handed out at least once.
  std::uint32_t bump() const { return bump_; }
  std::uint32_t handed_out() const { return bump_ - free_count_; }

  // Where they lie, for readers in other processes (block_tables.h).
  constexpr const void* capacity_word() const { return &capacity_; }
  constexpr const void* bump_word() const { return &bump_; }
  constexpr const void* free_count_word() const { return &free_count_; }

  // Takes the lowest free blocks, at most `count`, then ones never handed
  // out; returns how many. `base` is the slab's address. The lowest block is
  // written last, where a magazine pops first.
  std::uint32_t Take(Address base, void** blocks, std::uint32_t count);
  // Puts back the first blocks of `blocks` that are this slab's, at most
  // `count`, before the first that is free already, or was never handed out:
  // then `sound` is false. Returns how many.
  std::uint32_t Put(Address base, void* const* blocks, std::uint32_t count,
                    bool& sound);
  bool IsFree(std::uint32_t index) const;
  // The first run, from `index` on, of blocks that can be taken; of none where
  // none follows.
  struct Run {
    std::uint32_t first;
    std::uint32_t count;
  };
  Run NextFreeRun(std::uint32_t index) const;

  HAK_COLD void CheckInvariants() const;

  // The heap's lists (slab_store.h). kNoUnit ends a list.
  UnitIndex next = kNoUnit;
  UnitIndex previous = kNoUnit;
  std::uint8_t bucket : 4 = 0;
  // Since blocks were last taken or put: how often the look for idle slabs
  // (slab_holes.h) came by, up to kIdleLooks; one more: and gave back what is
  // free.
  static constexpr unsigned kIdleLooks = 2;
  std::uint8_t looks : 2 = 0;

 private:
  std::uint32_t WordCount() const { return (capacity() + 63) / 64; }
  // The bitmap follows the object: one word in the coarse zone, up to 64 in
  // the fine zone.
  std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(this + 1); }
  const std::uint64_t* words() const {
    return reinterpret_cast<const std::uint64_t*>(this + 1);
  }
  void TakeFromBitmap(Address base, void** end, std::uint32_t count);
  std::uint32_t FindBit(std::uint32_t index, bool set) const;

  SizeClass size_class_ = 0;
  // Written under the lock, by Start, and read by who counts blocks.
  Relaxed<std::uint16_t> capacity_;
  UnitIndex first_unit_ = 0;
  std::uint32_t bump_ = 0;
  std::uint32_t free_count_ = 0;
  std::uint64_t summary_ = 0;
};

// A zone's notes on each unit, in the table that Zone::UnitDescriptor reaches.
// Zero bytes are a valid descriptor of an unused unit.
struct UnitDescriptor {
  // Header bytes of this unit that may be other than zero, counted from its
  // first; outlives slabs, so that the next one clears no more than it must.
  std::uint32_t header_extent;
  // In the first unit of a span: its length. 0: no span starts here. Written by
  // who has claimed the span, read by who finds out what an address is.
  Relaxed<std::uint16_t> span_units;
  // In the first unit of a span: how much at its end is inaccessible. Written
  // by who allocates it, read like its length.
  Relaxed<std::uint8_t> span_guard_kib;
  // In the first unit of a span.
  BlockUse use;
  // In the first unit of a slab.
  Slab slab;
};

static_assert(sizeof(UnitDescriptor) + sizeof(std::uint64_t) <=
              kCoarseDescriptorBytes);
static_assert(sizeof(UnitDescriptor) + 64 * sizeof(std::uint64_t) <=
              kFineDescriptorBytes);

// How much of the span that starts at a unit can be accessed.
inline std::size_t SpanAccessibleBytes(const UnitDescriptor& descriptor) {
  return descriptor.span_units * kUnitBytes - descriptor.span_guard_kib * kKiB;
}

// How much of it the program may use: where lengths are rounded up, no more
// pages than it asked for, so that it leaves the others alone.
inline std::size_t SpanUsableBytes(const UnitDescriptor& descriptor,
                                   std::size_t page_bytes) {
  const std::size_t bytes = SpanAccessibleBytes(descriptor);
  const std::size_t requested_bytes = descriptor.use.requested_bytes;
  return requested_bytes == 0
             ? bytes
             : std::min(bytes, RoundUp(requested_bytes, page_bytes));
}

inline UnitDescriptor& DescriptorOf(const Zone& zone, UnitIndex unit) {
  return *static_cast<UnitDescriptor*>(zone.UnitDescriptor(unit));
}

// The zone of a class's blocks.
inline const Zone& ZoneOfClass(const Region& region, SizeClass size_class) {
  return IsTiny(size_class) ? region.fine() : region.coarse();
}

// The class of the blocks of the heap's slab that a unit of `zone` with this
// record is part of; kClassCount: the record is damaged, as it names none, or
// one of the other zone's.
inline SizeClass ClassOfUnit(const Zone& zone, UnitRecord record) {
  const unsigned code = HeaderCode(UnitLiveHeader(record));
  if (code - 1 >= kClassCount) return kClassCount;
  const auto size_class = static_cast<SizeClass>(code - 1);
  const bool fine = zone.granule_shift() == kFineGranuleShift;
  return IsTiny(size_class) == fine ? size_class : SizeClass{kClassCount};
}

static_assert(kClassCount < kSampledCode);

// The first unit of the slab of `size_class` that `unit` is part of.
constexpr UnitIndex SlabUnitOf(SizeClass size_class, UnitIndex unit) {
  return RoundDown(unit, kClassLayouts[size_class].slab_units);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SLAB_SLAB_H_
