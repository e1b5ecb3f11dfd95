#include "allocator/superslab/zone.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// Where in its window each table starts (see MetadataTable::Place). A header
// table at 0x540 took a malloc/free pair of small blocks from 13 ns to 6 ns in
// the prototype; the others keep clear of it and of each other.
constexpr std::size_t kBoundsColourBytes = 0x7c0;
constexpr std::size_t kDescriptorColourBytes = 0xa80;
constexpr std::size_t kSuperSlabColourBytes = 0xe40;

// How often Extend steps over what is in the way before it gives up.
constexpr int kMaxSteps = 64;
// The steps double, up to 2 GiB and a share of what is left: how long it is
// that is in the way is not known, and what was stepped over is lost.
constexpr FrameIndex kMaxStepFrames = 1024;
constexpr FrameIndex kStepShare = 8;

constexpr std::uint32_t ClosedUnits(Access access) {
  return access == Access::kClosed ? kAllUnits : 0;
}

constexpr std::size_t HeaderBytesPerFrame(const ZoneShape& shape) {
  return kSuperSlabBytes >> shape.granule_shift;
}
// An entry is longer than what one granule has of the table: no block is
// shorter than an entry, but the last frame's last one may end behind it.
constexpr std::size_t BoundsBytes(const ZoneShape& shape, std::size_t frames) {
  return shape.keeps_bounds
             ? frames * HeaderBytesPerFrame(shape) + sizeof(std::uint32_t)
             : 0;
}
constexpr std::size_t kRecordBytesPerFrame =
    kUnitsPerSuperSlab * sizeof(UnitRecord);
constexpr std::size_t DescriptorBytesPerFrame(const ZoneShape& shape) {
  return kUnitsPerSuperSlab * shape.descriptor_bytes;
}

// A table's window: room for its colour, and a page that stays unmapped.
std::size_t WindowBytes(std::size_t bytes, std::size_t page_bytes) {
  return RoundUp(bytes + 4096, page_bytes) + page_bytes;
}

}  // namespace

std::size_t Zone::TableBytes(ZoneShape shape, Tables tables, FrameIndex frames,
                             std::size_t page_bytes) {
  switch (tables) {
    case kRecordsAndHeaders:
      return kRecordWindowBytes +
             WindowBytes(frames * HeaderBytesPerFrame(shape), page_bytes);
    case kBounds:
      return shape.keeps_bounds
                 ? WindowBytes(BoundsBytes(shape, frames), page_bytes)
                 : 0;
    case kDescriptors:
      return WindowBytes(frames * DescriptorBytesPerFrame(shape), page_bytes);
    case kSuperSlabs:
      return WindowBytes(frames * sizeof(SuperSlab), page_bytes);
  }
  return 0;
}

void Zone::Place(Address base, FrameIndex frames,
                 const Address (&tables)[kTableWindows],
                 std::size_t page_bytes) {
  HAK_CHECK(IsAligned<Address>(base, kSuperSlabBytes));
  capacity_frames_ = frames;
  const auto place = [&](MetadataTable& table, Address begin,
                         std::size_t window_bytes, std::size_t colour_bytes) {
    table.Place(begin, window_bytes - page_bytes, colour_bytes);
    return table.start();
  };
  const auto window = [&](std::size_t bytes) {
    return WindowBytes(bytes, page_bytes);
  };
  HAK_CHECK_LE(window(frames * kRecordBytesPerFrame), kRecordWindowBytes);
  view_.base = base;
  const Address records = place(records_, tables[kRecordsAndHeaders],
                                kRecordWindowBytes, kRecordColourBytes);
  const Address headers =
      place(headers_, tables[kRecordsAndHeaders] + kRecordWindowBytes,
            window(frames * HeaderBytesPerFrame(shape_)), kHeaderColourBytes);
  HAK_CHECK_EQ(headers - records, kRecordDistanceBytes);
  view_.headers = reinterpret_cast<std::atomic<HeaderByte>*>(headers);
  view_.header_origin = headers - (base >> shape_.granule_shift);
  if (shape_.keeps_bounds) {
    const Address bounds =
        place(bounds_, tables[kBounds], window(BoundsBytes(shape_, frames)),
              kBoundsColourBytes);
    view_.bounds_origin = bounds - (base >> shape_.granule_shift);
  }
  descriptors_ = place(descriptor_table_, tables[kDescriptors],
                       window(frames * DescriptorBytesPerFrame(shape_)),
                       kDescriptorColourBytes);
  super_slabs_ = reinterpret_cast<SuperSlab*>(
      place(super_slab_table_, tables[kSuperSlabs],
            window(frames * sizeof(SuperSlab)), kSuperSlabColourBytes));
}

VmStatus Zone::GrowTables(VirtualMemory& memory, std::size_t frames) {
  VmStatus status =
      headers_.EnsureMapped(memory, frames * HeaderBytesPerFrame(shape_));
  if (status.ok() && shape_.keeps_bounds) {
    status = bounds_.EnsureMapped(memory, BoundsBytes(shape_, frames));
  }
  if (status.ok()) {
    status = records_.EnsureMapped(memory, frames * kRecordBytesPerFrame);
  }
  if (status.ok()) {
    status = descriptor_table_.EnsureMapped(
        memory, frames * DescriptorBytesPerFrame(shape_));
  }
  if (status.ok()) {
    status = super_slab_table_.EnsureMapped(memory, frames * sizeof(SuperSlab));
  }
  return status;
}

VmStatus Zone::Map(VirtualMemory& memory, FrameIndex first, std::size_t bytes,
                   Access access) {
  const Address begin = FrameAddress(first);
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
  for (int steps = 0; steps <= kMaxSteps; ++steps) {
    if (frames > capacity_frames_ - first) {
      // After steps, what was stepped over is the reason.
      result.exhausted = steps == 0;
      return result;
    }
    result.status = GrowTables(memory, std::size_t{first} + frames);
    if (!result.status.ok()) {
      result.tables = true;
      result.exhausted = result.status.error_number == ENOSPC;
      return result;
    }
    result.status =
        Map(memory, first,
            frames * kSuperSlabBytes - unmapped_units * kUnitBytes, access);
    if (result.status.error_number != EEXIST) break;
    const FrameIndex most = std::clamp((capacity_frames_ - first) / kStepShare,
                                       FrameIndex{1}, kMaxStepFrames);
    const FrameIndex step =
        std::min(FrameIndex{1} << std::clamp(steps - 1, 0, 10), most);
    if (step > frames) {
      const VmStatus tables = GrowTables(memory, std::size_t{first} + step);
      if (!tables.ok()) {
        result.status = tables;
        result.tables = true;
        result.exhausted = tables.error_number == ENOSPC;
        return result;
      }
    }
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
  const VmStatus status = Map(memory, first, frames * kSuperSlabBytes, access);
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
  headers_.CheckInvariants();
  bounds_.CheckInvariants();
  records_.CheckInvariants();
  descriptor_table_.CheckInvariants();
  super_slab_table_.CheckInvariants();
  const std::size_t frames = frame_count();
  if (frames != 0) {  // Z1
    HAK_CHECK_GE(headers_.mapped_bytes(), frames * HeaderBytesPerFrame(shape_));
    HAK_CHECK_GE(bounds_.mapped_bytes(), BoundsBytes(shape_, frames));
    HAK_CHECK_GE(records_.mapped_bytes(), frames * kRecordBytesPerFrame);
    HAK_CHECK_GE(descriptor_table_.mapped_bytes(),
                 frames * DescriptorBytesPerFrame(shape_));
    HAK_CHECK_GE(super_slab_table_.mapped_bytes(), frames * sizeof(SuperSlab));
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
