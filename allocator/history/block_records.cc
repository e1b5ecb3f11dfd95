#include "allocator/history/block_records.h"

#include <bit>

#include "allocator/superslab/block_bounds.h"

namespace hakmem {
namespace {

// A variant that keeps records has no shorter blocks.
constexpr unsigned kTinyShift = std::countr_zero(kMinBoundedBlockBytes);
constexpr unsigned kEmptyShift = std::countr_zero(kMinAlignmentBytes);

}  // namespace

void BlockRecords::Start(const Region& region) {
  const FutexLockHolder hold(lock_);
  const Region::Window windows[kTables] = {
      {region.fine().view().base,
       region.fine().capacity_frames() * kSuperSlabBytes},
      {region.coarse().view().base,
       region.coarse().capacity_frames() * kSuperSlabBytes},
      region.huge(),
      region.empty_blocks()};
  constexpr unsigned kShifts[kTables] = {kTinyShift, kCoarseGranuleShift,
                                         kSuperSlabShift, kEmptyShift};
  for (unsigned i = 0; i < kTables; ++i) {
    const Region::Window window =
        region.heap_window(Region::kRecordWindows + i);
    tables_[i].base = windows[i].begin;
    tables_[i].bytes = windows[i].bytes;
    tables_[i].shift = kShifts[i];
    tables_[i].records.Place(window.begin, window.bytes, 0);
  }
}

int BlockRecords::Locate(const void* block, std::size_t& offset) const {
  const auto address = reinterpret_cast<Address>(block);
  for (unsigned i = 0; i < kTables; ++i) {
    if (address - tables_[i].base >= tables_[i].bytes) continue;
    offset =
        ((address - tables_[i].base) >> tables_[i].shift) * sizeof(BlockRecord);
    return static_cast<int>(i);
  }
  return -1;
}

BlockRecord* BlockRecords::Make(const void* block) {
  std::size_t offset = 0;
  const int index = Locate(block, offset);
  if (index < 0) return nullptr;
  MetadataTable& records = tables_[index].records;
  const std::size_t end = offset + sizeof(BlockRecord);
  if (end > records.mapped_bytes()) {
    const FutexLockHolder hold(lock_);
    if (!records.EnsureMapped(memory_, end).ok()) return nullptr;
  }
  return reinterpret_cast<BlockRecord*>(records.start() + offset);
}

const BlockRecord* BlockRecords::Find(const void* block) const {
  std::size_t offset = 0;
  const int index = Locate(block, offset);
  if (index < 0) return nullptr;
  const MetadataTable& records = tables_[index].records;
  if (offset + sizeof(BlockRecord) > records.mapped_bytes()) return nullptr;
  return reinterpret_cast<const BlockRecord*>(records.start() + offset);
}

std::size_t BlockRecords::mapped_bytes() const {
  std::size_t bytes = 0;
  for (const Table& table : tables_) bytes += table.records.mapped_bytes();
  return bytes;
}

}  // namespace hakmem
