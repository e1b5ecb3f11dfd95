#include "allocator/superslab/zone.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// Where in its window each table starts (see MetadataTable::Place). Headers at
// 0x540 took a pair from 13 ns to 6 ns; the others keep clear of them.
constexpr std::size_t kColourBytes[] = {kRecordColourBytes, 0x7c0, 0xa80, 0xe40,
                                        kHeaderColourBytes};

// How often Extend steps over what is in the way before it gives up.
constexpr int kMaxSteps = 64;
// The steps double, up to 2 GiB and a share of what is left: how long it is
// that is in the way is not known, and what was stepped over is lost.
constexpr FrameIndex kMaxStepFrames = 1024;
constexpr FrameIndex kStepShare = 8;

constexpr std::uint32_t ClosedUnits(Access access) {
  return access == Access::kClosed ? kAllUnits : 0;
}

// What `frames` frames need of a table.
std::size_t NeededBytes(ZoneShape shape, unsigned table, std::size_t frames) {
  const std::size_t granules =
      frames * (kSuperSlabBytes >> shape.granule_shift);
  const std::size_t units = frames * kUnitsPerSuperSlab;
  switch (table) {
    case Zone::kHeaders:
      return granules * sizeof(HeaderByte);
    case Zone::kRecords:
      return units * sizeof(UnitRecord);
    case Zone::kDescriptors:
      return units * shape.descriptor_bytes;
    case Zone::kSuperSlabs:
      return frames * sizeof(SuperSlab);
    default:
      // An entry is longer than what one granule has of the table: no block is
      // shorter than an entry, but the last frame's last one may end behind it.
      return shape.keeps_bounds ? granules + sizeof(std::uint32_t) : 0;
  }
}

// A table's window: room for its colour, and a page that stays unmapped.
std::size_t WindowBytes(std::size_t bytes, std::size_t page_bytes) {
  return bytes == 0 ? 0 : RoundUp(bytes + 4096, page_bytes) + page_bytes;
}

}  // namespace

std::size_t Zone::TableBytes(ZoneShape shape, unsigned window,
                             FrameIndex frames, std::size_t page_bytes) {
  if (window == kRecords) {
    return kRecordWindowBytes +
           WindowBytes(NeededBytes(shape, kHeaders, frames), page_bytes);
  }
  return WindowBytes(NeededBytes(shape, window, frames), page_bytes);
}

void Zone::Place(Address base, FrameIndex frames,
                 const Address (&windows)[kTableWindows],
                 std::size_t page_bytes) {
  HAK_CHECK(IsAligned<Address>(base, kSuperSlabBytes));
  window_frames_ = frames;
  Reopen();
  for (unsigned i = 0; i <= kHeaders; ++i) {
    std::size_t bytes = WindowBytes(NeededBytes(shape_, i, frames), page_bytes);
    if (bytes == 0) continue;
    if (i == kRecords) {
      HAK_CHECK_LE(bytes, kRecordWindowBytes);
      bytes = kRecordWindowBytes;
    }
    tables_[i].Place(
        i == kHeaders ? windows[kRecords] + kRecordWindowBytes : windows[i],
        bytes - page_bytes, kColourBytes[i]);
  }
  view_.base = base;
  const Address headers = tables_[kHeaders].start();
  HAK_CHECK_EQ(headers - tables_[kRecords].start(), kRecordDistanceBytes);
  view_.headers = reinterpret_cast<std::atomic<HeaderByte>*>(headers);
  view_.header_origin = headers - (base >> shape_.granule_shift);
  if (shape_.keeps_bounds) {
    view_.bounds = tables_[kBounds].start();
    view_.bounds_origin = view_.bounds - (base >> shape_.granule_shift);
  }
  descriptors_ = tables_[kDescriptors].start();
  super_slabs_ = reinterpret_cast<SuperSlab*>(tables_[kSuperSlabs].start());
}

VmStatus Zone::GrowTables(VirtualMemory& memory, std::size_t frames) {
  VmStatus status;
  for (unsigned i = 0; i <= kHeaders && status.ok(); ++i) {
    const std::size_t bytes = NeededBytes(shape_, i, frames);
    if (bytes != 0) status = tables_[i].EnsureMapped(memory, bytes);
  }
  return status;
}

VmStatus Zone::Map(VirtualMemory& memory, UnitIndex first, std::size_t bytes,
                   Access access) {
  const Address begin = UnitAddress(first);
  return access == Access::kClosed ? memory.MapClosed(begin, bytes)
                                   : memory.MapAt(begin, bytes);
}

// Frames after the last one, which the tables cover.
void Zone::Append(FrameIndex first, FrameIndex frames, Presence presence,
                  Access access) {
  const FrameIndex end = first + frames;
  for (FrameIndex frame = first; frame < end; ++frame) {
    super_slabs_[frame].presence = presence;
    super_slabs_[frame].closed_units = ClosedUnits(access);
  }
  frame_count_.store(end, std::memory_order_relaxed);
  view_.limit_granules.store(
      std::uint64_t{end} << (kSuperSlabShift - shape_.granule_shift),
      std::memory_order_relaxed);
  if (presence == Presence::kMapped) mapped_runs_ += RunsOf(first, frames);
}

Zone::Extension Zone::Extend(VirtualMemory& memory, FrameIndex frames,
                             Access access, std::uint32_t unmapped_units) {
  Extension result;
  FrameIndex first = frame_count();
  const auto grow_tables = [&](FrameIndex more) {
    const VmStatus status = GrowTables(memory, std::size_t{first} + more);
    if (!status.ok()) result.status = status;
    // A table has no holes.
    if (status.error_number == EEXIST) {
      capacity_frames_.store(first + more - 1, std::memory_order_relaxed);
    }
    return status.ok();
  };
  for (int steps = 0; steps <= kMaxSteps; ++steps) {
    if (frames > capacity_frames() - first) {
      // After steps, what was stepped over is the reason.
      result.exhausted = steps == 0;
      return result;
    }
    if (!grow_tables(frames)) return result;
    result.status =
        Map(memory, FirstUnitOfFrame(first),
            frames * kSuperSlabBytes - unmapped_units * kUnitBytes, access);
    if (result.status.error_number != EEXIST) break;
    const FrameIndex most = std::clamp((capacity_frames() - first) / kStepShare,
                                       FrameIndex{1}, kMaxStepFrames);
    const FrameIndex step =
        std::min(FrameIndex{1} << std::clamp(steps - 1, 0, 10), most);
    if (step > frames && !grow_tables(step)) return result;
    Append(first, step, Presence::kForeign, Access::kOpen);
    first += step;
  }
  if (!result.status.ok()) return result;
  Append(first, frames, Presence::kMapped, access);
  SuperSlab& last = super_slabs_[first + frames - 1];
  last.unmapped_units =
      BitRun32(kUnitsPerSuperSlab - unmapped_units, unmapped_units);
  last.closed_units &= ~last.unmapped_units;
  result.first = first;
  result.frames = frames;
  return result;
}

VmStatus Zone::ExtendLast(VirtualMemory& memory, std::uint32_t units,
                          Access access) {
  const FrameIndex frame = frame_count() - 1;
  SuperSlab& last = super_slabs_[frame];
  const auto first =
      static_cast<unsigned>(std::countr_zero(last.unmapped_units));
  const VmStatus status =
      Map(memory, FirstUnitOfFrame(frame) + first, units * kUnitBytes, access);
  if (!status.ok()) return status;
  const std::uint32_t mapped = BitRun32(first, units);
  last.unmapped_units &= ~mapped;
  last.closed_units |= ClosedUnits(access) & mapped;
  return status;
}

VmStatus Zone::UnmapFrame(VirtualMemory& memory, FrameIndex frame) {
  SuperSlab& slab = super_slabs_[frame];
  HAK_CHECK(IsMapped(frame));
  const auto units =
      static_cast<unsigned>(std::countr_zero(UnmappedUnits(frame)));
  const VmStatus status = memory.Unmap(FrameAddress(frame), units * kUnitBytes);
  if (!status.ok()) return status;
  mapped_runs_ -= RunsOf(frame, 1);
  slab.closed_units = 0;
  slab.unmapped_units = 0;
  slab.presence = Presence::kUnmapped;
  return status;
}

VmStatus Zone::Remap(VirtualMemory& memory, FrameIndex first, FrameIndex frames,
                     Access access) {
  const VmStatus status =
      Map(memory, FirstUnitOfFrame(first), frames * kSuperSlabBytes, access);
  if (status.ok()) mapped_runs_ += RunsOf(first, frames);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    SuperSlab& slab = super_slabs_[frame];
    HAK_CHECK_EQ(slab.presence, Presence::kUnmapped);
    if (status.ok()) {
      slab.presence = Presence::kMapped;
      slab.closed_units = ClosedUnits(access);
    } else if (status.error_number == EEXIST &&
               (frames == 1 ||
                memory.IsTaken(FrameAddress(frame), kSuperSlabBytes))) {
      slab.presence = Presence::kForeign;
    }
  }
  return status;
}

void Zone::CheckInvariants() const {
  const std::size_t frames = frame_count();
  for (unsigned i = 0; i <= kHeaders; ++i) {
    tables_[i].CheckInvariants();
    if (frames != 0) {
      HAK_CHECK_GE(tables_[i].mapped_bytes(),
                   NeededBytes(shape_, i, frames));  // Z1
    }
  }
  HAK_CHECK_EQ(
      view_.limit_granules.load(std::memory_order_relaxed),
      std::uint64_t{frames} << (kSuperSlabShift - shape_.granule_shift));  // Z2
  std::size_t runs = 0;
  for (FrameIndex frame = 0; frame < frames; ++frame) {
    if (IsMapped(frame) && !IsMapped(frame - 1)) ++runs;  // Z4
    const SuperSlab& slab = super_slabs_[frame];
    HAK_CHECK_NE(slab.presence, Presence::kNever);  // Z3
    HAK_CHECK(slab.presence == Presence::kMapped ||
              (slab.closed_units | slab.unmapped_units) == 0);  // Z3
    HAK_CHECK_NE(slab.unmapped_units, kAllUnits);               // Z3
  }
  HAK_CHECK_EQ(runs, mapped_runs_);  // Z4
}

}  // namespace hakmem
