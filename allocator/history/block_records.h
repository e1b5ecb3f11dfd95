// Who allocated each block, and who freed it last: a record beside each block's
// header.
//
// Owns: the tables of records, one for each zone and one for blocks of size 0.
// Called by: the debug variant's frontend. Thread-safety: any thread; a record
// is written by whoever allocates or frees its block, read by reports. Growing
// takes the tables' own lock, under which no other is taken.
//
// The tables' windows are smaller than the zones: a record of a block that lies
// further out is not kept.
//
// Invariants:
//   BR1: two blocks that exist at the same time have different records.
#ifndef HAKMEM_ALLOCATOR_HISTORY_BLOCK_RECORDS_H_
#define HAKMEM_ALLOCATOR_HISTORY_BLOCK_RECORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/history/stack_depot.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// Written by whoever allocates or frees the block, read by reports: relaxed,
// because a report is no more than what was known.
struct BlockRecord {
  std::atomic<StackId> allocation_stack;
  std::atomic<StackId> free_stack;
  std::atomic<std::int32_t> allocation_thread;  // the kernel's id
  std::atomic<std::int32_t> free_thread;
};
static_assert(sizeof(BlockRecord) == 16);

class BlockRecords {
 public:
  explicit constexpr BlockRecords(VirtualMemory& memory) : memory_(memory) {}
  BlockRecords(const BlockRecords&) = delete;
  BlockRecords& operator=(const BlockRecords&) = delete;

  // Once, before anything else, when the region has its place.
  void Start(const Region& region);

  // The record of the block that starts at `block`; null: none is kept.
  BlockRecord* Make(const void* block);
  // The same, unless nobody has made one.
  const BlockRecord* Find(const void* block) const;

  std::size_t mapped_bytes() const;

  // For a fork.
  FutexLock& lock() { return lock_; }

 private:
  // A zone's blocks start at least 1 << shift bytes apart.
  struct Table {
    Address base = 0;
    std::size_t bytes = 0;
    unsigned shift = 0;
    MetadataTable records;
  };
  static constexpr unsigned kTables = 4;

  // Where the block's record would be; -1: in no table.
  int Locate(const void* block, std::size_t& offset) const;

  VirtualMemory& memory_;
  FutexLock lock_;
  Table tables_[kTables];  // grown under lock_
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HISTORY_BLOCK_RECORDS_H_
