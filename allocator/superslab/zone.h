// A zone: the part of the region whose blocks share one header granule.
//
// Owns: the zone's frames (one SuperSlab each) and its tables: detached
// headers, unit records, unit descriptors and SuperSlab records, and bounds of
// blocks for who asks for them. Called by: ace (placing frames), slab, heap and
// core (looking blocks up).
// Thread-safety: Place, Extend, what unmaps and maps again under the caller's
// lock; look-ups from any thread for any frame below frame_count().
//
// Invariants:
//   Z1: every table covers every frame below frame_count().
//   Z2: view.limit_granules == frame_count() << (kSuperSlabShift - granule
//       shift), and never shrinks.
//   Z3: each frame below frame_count() is kMapped, kUnmapped or kForeign, and
//       mapped by hakmem, but for its unmapped units, exactly when it is
//       kMapped; others have no closed and no unmapped units.
//   Z4: mapped_runs() is how many runs of neighbouring frames are mapped, so
//       that each is at least one mapping of the kernel's.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_ZONE_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_ZONE_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/config/partitions.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/metadata_table.h"

namespace hakmem {

// Frames and units are numbered from the zone's base.
using FrameIndex = std::uint32_t;
using UnitIndex = std::uint32_t;
inline constexpr FrameIndex kNoFrame = ~FrameIndex{0};
inline constexpr UnitIndex kNoUnit = ~UnitIndex{0};
inline constexpr unsigned kUnitsPerFrameShift = kSuperSlabShift - kUnitShift;

constexpr FrameIndex FrameOfUnit(UnitIndex unit) {
  return unit >> kUnitsPerFrameShift;
}
constexpr unsigned UnitInFrame(UnitIndex unit) {
  return unit & (kUnitsPerSuperSlab - 1);
}
constexpr UnitIndex FirstUnitOfFrame(FrameIndex frame) {
  return frame << kUnitsPerFrameShift;
}

enum class Presence : std::uint8_t { kNever, kMapped, kUnmapped, kForeign };
// Whether what is mapped can be read and written at once, or has to be opened.
enum class Access : std::uint8_t { kOpen, kClosed };

// A mask of a frame's units that has all of them.
inline constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

// The record of one SuperSlab. All but `presence` belongs to ace, which
// keeps its invariants (unit_pool.h).
struct alignas(64) SuperSlab {
  std::uint32_t free_units;      // bit per unit
  std::uint32_t kept_units;      // free, too, but for their own class alone
  std::uint32_t dirty_units;     // of both: may hold old data
  std::uint32_t guarded_units;   // their last page is inaccessible
  std::uint32_t purging_units;   // given back; kept ones are in both
  std::uint32_t moved_units;     // in a mapping of their own (Move), which
  std::uint32_t moved_starts;    // begins here
  std::uint32_t closed_units;    // mapped without access, and not opened yet
  std::uint32_t unmapped_units;  // at the end of a mapped frame
  // A part of the map of wholly free frames (frame_runs.cc).
  std::uint64_t free_map;
  FrameIndex next;  // of the list that `list` names
  FrameIndex previous;
  std::uint32_t run_frames;  // at both ends of a run of wholly free frames
  std::uint8_t list;
  Presence presence;
  bool on_dirty_list : 1;
  bool described : 1;  // units were taken since their descriptors went back
  bool huge : 1;       // huge pages are asked for, whenever it is mapped
  bool split : 1;      // but not now: a part was given back
  FrameIndex dirty_next;
  FrameIndex dirty_previous;
  // Of each unit that a range begins with (range_pool.h): the next free range,
  // plus 1, while this one is free; for which alignment it was carved, in
  // units.
  UnitIndex next_ranges[kUnitsPerSuperSlab];
  std::uint8_t range_alignment_shifts[kUnitsPerSuperSlab];
  // Whose ranges alone it has (config/partitions.h). Written once, before it
  // has a block.
  Partition partition;
};
static_assert(sizeof(SuperSlab) == 256);

// The unit records' table starts so far before the headers', so that one
// pointer reaches both. It fits an instruction's displacement.
inline constexpr std::size_t kRecordWindowBytes = 257 * kMiB;
inline constexpr std::size_t kHeaderColourBytes = 0x540;
inline constexpr std::size_t kRecordColourBytes = 0x2c0;
inline constexpr std::size_t kRecordDistanceBytes =
    kRecordWindowBytes + kHeaderColourBytes - kRecordColourBytes;

// The fields that every malloc and free reads. Plain fields: they are written
// once, while the region is placed, before any block exists.
struct ZoneView {
  Address base = 0;
  // Written by Extend, read by every thread. A thread that holds a block
  // learnt of it after the limit grew past it, so relaxed is enough.
  std::atomic<std::uint64_t> limit_granules{0};
  // Each header byte is written by whoever changes the block's state.
  std::atomic<HeaderByte>* headers = nullptr;
  // headers less what the base contributes to a granule's number: a block's
  // header lies at header_origin + (its address >> granule shift).
  Address header_origin = 0;
  // The same for the bounds of blocks (block_bounds.h): a block's lie at bounds
  // + its granule, and at bounds_origin + (its address >> granule shift). 0:
  // nobody keeps bounds.
  Address bounds = 0;
  Address bounds_origin = 0;
  // Each record is written by ace's caller when the unit is granted or
  // released, read by every thread.
  HAK_ALWAYS_INLINE std::atomic<UnitRecord>& RecordOf(
      std::uint64_t unit) const {
    return reinterpret_cast<std::atomic<UnitRecord>*>(
        reinterpret_cast<Address>(headers) - kRecordDistanceBytes)[unit];
  }

  // The header byte of the granule that holds `block`, one of the zone's.
  HAK_ALWAYS_INLINE std::atomic<HeaderByte>& HeaderOf(
      const void* block, unsigned granule_shift) const {
    return *reinterpret_cast<std::atomic<HeaderByte>*>(
        header_origin + (reinterpret_cast<Address>(block) >> granule_shift));
  }

  // The granule that starts at `address`: a number below the limit exactly
  // when the address is in the zone and aligned to the granule. The rotation
  // moves the bits below the granule to the top, so that one comparison
  // rejects misaligned and foreign addresses together.
  HAK_ALWAYS_INLINE std::uint64_t Granule(Address address,
                                          unsigned granule_shift) const {
    return std::rotr(static_cast<std::uint64_t>(address - base),
                     static_cast<int>(granule_shift));
  }
};

struct ZoneShape {
  unsigned granule_shift;
  std::size_t descriptor_bytes;  // of one unit
  bool keeps_bounds = false;
};

class Zone {
 public:
  explicit constexpr Zone(ZoneShape shape) : shape_(shape) {}
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

  // Before Place: there will be a table of bounds.
  void KeepBounds() { shape_.keeps_bounds = true; }
  const ZoneShape& shape() const { return shape_; }
  // Place needs TableBytes for each window, beside the zone's own of `frames`
  // frames. Headers are in the window of the records, for RecordOf.
  enum Table : std::uint8_t {
    kRecords,
    kBounds,
    kDescriptors,
    kSuperSlabs,
    kHeaders
  };
  static constexpr unsigned kTableWindows = kHeaders;
  HAK_COLD static std::size_t TableBytes(ZoneShape shape, unsigned window,
                                         FrameIndex frames,
                                         std::size_t page_bytes);
  // `windows[i]` is the address of TableBytes() free bytes.
  HAK_COLD void Place(Address base, FrameIndex frames,
                      const Address (&windows)[kTableWindows],
                      std::size_t page_bytes);

  struct Extension {
    VmStatus status;         // of the call that was refused
    bool exhausted = false;  // the zone's window is used up
    FrameIndex first = kNoFrame;
    FrameIndex frames = 0;  // mapped: all that were asked for, or none
  };
  // Maps `frames` (1 or more) neighbouring frames after the last one, but for
  // so many units at the end of the last of them.
  Extension Extend(VirtualMemory& memory, FrameIndex frames,
                   Access access = Access::kOpen,
                   std::uint32_t unmapped_units = 0);
  // Maps so many more units of the last frame, of which as many are unmapped.
  VmStatus ExtendLast(VirtualMemory& memory, std::uint32_t units,
                      Access access);
  // What lay in the tables may be gone: the zone ends with its window again.
  void Reopen() {
    capacity_frames_.store(window_frames_, std::memory_order_relaxed);
  }
  // Gives memory and addresses of a mapped frame back.
  VmStatus UnmapFrame(VirtualMemory& memory, FrameIndex frame);
  // Maps neighbouring frames again that UnmapFrame unmapped: all or none.
  // EEXIST: something else has taken addresses; frames of which it has some are
  // kForeign from now on.
  VmStatus Remap(VirtualMemory& memory, FrameIndex first, FrameIndex frames,
                 Access access = Access::kOpen);

  std::size_t mapped_runs() const { return mapped_runs_; }
  bool IsBetweenMapped(FrameIndex frame) const {
    return IsMapped(frame - 1) && IsMapped(frame + 1);
  }
  // Also of a frame before the first one (kNoFrame), or after the last.
  bool IsMapped(FrameIndex frame) const {
    return frame < frame_count() &&
           super_slabs_[frame].presence == Presence::kMapped;
  }
  // Those of a frame's units that are not mapped.
  std::uint32_t UnmappedUnits(FrameIndex frame) const {
    return super_slabs_[frame].presence == Presence::kMapped
               ? super_slabs_[frame].unmapped_units
               : ~std::uint32_t{0};
  }

  const ZoneView& view() const { return view_; }
  ZoneView& view() { return view_; }
  unsigned granule_shift() const { return shape_.granule_shift; }
  FrameIndex frame_count() const {
    return frame_count_.load(std::memory_order_relaxed);
  }
  // Where the zone ends: with its window, or where others lie in its tables.
  FrameIndex capacity_frames() const {
    return capacity_frames_.load(std::memory_order_relaxed);
  }
  bool Contains(Address address) const {
    return address - view_.base < FrameAddress(frame_count()) - view_.base;
  }

  Address FrameAddress(FrameIndex frame) const {
    return view_.base + (static_cast<Address>(frame) << kSuperSlabShift);
  }
  Address UnitAddress(UnitIndex unit) const {
    return view_.base + (static_cast<Address>(unit) << kUnitShift);
  }
  UnitIndex UnitOf(Address address) const {
    return static_cast<UnitIndex>((address - view_.base) >> kUnitShift);
  }
  SuperSlab& super_slab(FrameIndex frame) { return super_slabs_[frame]; }
  const SuperSlab& super_slab(FrameIndex frame) const {
    return super_slabs_[frame];
  }
  void* UnitDescriptor(UnitIndex unit) const {
    return reinterpret_cast<void*>(descriptors_ +
                                   unit * shape_.descriptor_bytes);
  }
  std::atomic<UnitRecord>& unit_record(UnitIndex unit) const {
    return view_.RecordOf(unit);
  }
  // The header byte of the granule that holds `address`.
  std::atomic<HeaderByte>& header(Address address) const {
    return view_.headers[(address - view_.base) >> shape_.granule_shift];
  }
  // Bytes of header table per unit.
  std::size_t UnitHeaderBytes() const {
    return kUnitBytes >> shape_.granule_shift;
  }
  HeaderByte* UnitHeaders(UnitIndex unit) const {
    return reinterpret_cast<HeaderByte*>(&header(UnitAddress(unit)));
  }
  // Where the bounds of a unit's blocks lie, in as many bytes; 0: there is no
  // table of them.
  Address UnitBounds(UnitIndex unit) const {
    return view_.bounds_origin == 0
               ? 0
               : view_.bounds_origin +
                     (UnitAddress(unit) >> shape_.granule_shift);
  }

  template <typename Visit>
  constexpr void VisitTables(Visit visit) const {
    for (const MetadataTable& table : tables_) visit(table);
  }
  // ZoneTables, for readers from outside; `shape` is this zone's.
  template <typename Tables>
  constexpr Tables Describe(ZoneShape shape) const {
    return {
        .granule_shift = shape.granule_shift,
        .descriptor_bytes = static_cast<std::uint32_t>(shape.descriptor_bytes),
        .frame_count = &frame_count_,
        .headers = static_cast<const void*>(&view_.headers),
        .descriptors = &descriptors_};
  }

  HAK_COLD void CheckInvariants() const;

 private:
  VmStatus GrowTables(VirtualMemory& memory, std::size_t frames);
  VmStatus Map(VirtualMemory& memory, UnitIndex first, std::size_t bytes,
               Access access);
  void Append(FrameIndex first, FrameIndex frames, Presence presence,
              Access access);
  // By how many runs there are more with these frames mapped than without.
  std::size_t RunsOf(FrameIndex first, FrameIndex frames) const {
    return std::size_t{1} - (IsMapped(first - 1) ? 1 : 0) -
           (IsMapped(first + frames) ? 1 : 0);
  }

  ZoneView view_;
  ZoneShape shape_;
  Address descriptors_ = 0;
  SuperSlab* super_slabs_ = nullptr;
  std::size_t mapped_runs_ = 0;
  FrameIndex window_frames_ = 0;
  // Written under the caller's lock, read by all.
  std::atomic<FrameIndex> capacity_frames_{0};
  std::atomic<FrameIndex> frame_count_{0};
  MetadataTable tables_[kHeaders + 1];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_ZONE_H_
