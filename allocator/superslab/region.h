// The region: the address range that holds every block hakmem hands out.
//
// Owns: where its zones and tables lie. Called by: ace, core.
// Thread-safety: Place once, under the caller's lock; the rest as Zone.
//
// The tables lie behind the blocks, at a random distance. Where tables are
// scattered, each has a random address of its own. But a zone's unit records
// and headers keep their distance, which is part of the instructions of every
// free (zone.h), and a Huge block's header and record lie in one window.
//
// Before and after each table are addresses that stay unmapped: at least a page
// at its end, and at its start the last table's page or a random distance.
//
// Invariants:
//   RG1: the zones' and tables' windows are disjoint.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_REGION_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_REGION_H_

#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

inline constexpr unsigned kFineGranuleShift = 4;
inline constexpr unsigned kCoarseGranuleShift = 8;

// Bytes of one unit's descriptor (slab.h fills them): in the fine zone up to
// 4,096 blocks need a bitmap of 64 words, in the coarse zone one word does.
inline constexpr std::size_t kFineDescriptorBytes = 576;
inline constexpr std::size_t kCoarseDescriptorBytes = 64;
inline constexpr ZoneShape kFineShape = {kFineGranuleShift,
                                         kFineDescriptorBytes};
inline constexpr ZoneShape kCoarseShape = {kCoarseGranuleShift,
                                           kCoarseDescriptorBytes};

// The part of the range that the zones' tables take whatever its length.
inline constexpr std::size_t kRegionFixedBytes = 2 * kRecordWindowBytes;

class Region {
 public:
  constexpr Region() : fine_(kFineShape), coarse_(kCoarseShape) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Chooses all addresses, where nothing lies yet if it can; maps nothing. The
  // windows scale with the range that the platform offers (a 39-bit address
  // space gets smaller ones).
  HAK_COLD void Place(VirtualMemory& memory, const Config& config = kRelease);
  bool placed() const { return window_bytes_ != 0; }

  constexpr Zone& fine() { return fine_; }
  constexpr Zone& coarse() { return coarse_; }
  constexpr const Zone& fine() const { return fine_; }
  constexpr const Zone& coarse() const { return coarse_; }

  // The huge zone's window, and one for its tables.
  struct Window {
    Address begin = 0;
    std::size_t bytes = 0;
  };
  Window huge() const { return huge_; }
  Window huge_tables() const { return windows_[kHugeTables]; }
  // For the heap layer's tables: heaps, magazines; for a call trace's
  // rings; for the debug variant's call stacks, and its records of blocks in
  // each of the three zones, and of size 0; and for guarded blocks.
  static constexpr unsigned kHeapWindows = 11;
  static constexpr unsigned kPartitionWindow = 2;
  static constexpr unsigned kStackWindow = 4;
  static constexpr unsigned kRecordWindows = 5;
  static constexpr unsigned kGuardWindow = 9;
  static constexpr unsigned kProfileWindow = 10;
  Window heap_window(unsigned index) const { return windows_[kHeap + index]; }
  // Windows of blocks of size 0 and their table; empty: the variant has none.
  Window empty_blocks() const { return windows_[kEmptyBlocks]; }
  Window empty_tables() const { return windows_[kEmptyTables]; }

  // All that Place has laid out: the zones side by side, then tables.
  static constexpr unsigned kWindows =
      1 + 2 * Zone::kTableWindows + 1 + kHeapWindows + 2;
  constexpr const Window* windows() const { return windows_; }

 private:
  enum : std::uint8_t {
    kBlocks,
    kFineTables,
    kCoarseTables = kFineTables + Zone::kTableWindows,
    kHugeTables = kCoarseTables + Zone::kTableWindows,
    kHeap,
    kEmptyBlocks = kHeap + kHeapWindows,
    kEmptyTables,
  };
  static_assert(kEmptyTables + 1 == kWindows);

  HAK_COLD void SetLengths(std::size_t page_bytes, const Config& config);
  HAK_COLD void SetPlaces(VirtualMemory& memory, Address begin,
                          std::size_t range_bytes, bool scattered);
  HAK_COLD bool IsUntaken(VirtualMemory& memory) const;

  Zone fine_;
  Zone coarse_;
  std::size_t window_bytes_ = 0;
  Window huge_;
  Window windows_[kWindows];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_REGION_H_
