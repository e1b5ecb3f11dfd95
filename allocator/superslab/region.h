// The region: the address range that holds every block hakmem hands out.
//
// Owns: where its zones and tables lie. Called by: ace, core.
// Thread-safety: Place once, under the caller's lock; the rest as Zone.
//
// Three zones lie side by side from a random base on, so that one range holds
// every block and each zone is one comparison inside it:
//   fine    Tiny blocks; one header byte per 16 bytes
//   coarse  Pool blocks and Spans; one header byte per 256 bytes, because
//           their sizes are multiples of 256 and the table should cost 0.4 %
//   huge    Huge blocks; one header byte per SuperSlab frame
// Nothing is reserved: windows are addresses only, mapped when used, so that
// an address-space limit (RLIMIT_AS) is spent on blocks.
//
// Invariants:
//   G1: the zones' and tables' windows are disjoint.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_REGION_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_REGION_H_

#include <cstddef>

#include "allocator/base/units.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

inline constexpr unsigned kFineGranuleShift = 4;
inline constexpr unsigned kCoarseGranuleShift = 8;

// Bytes of one unit's descriptor (slab.h fills them): in the fine zone up to
// 4,096 blocks need a bitmap of 64 words, in the coarse zone one word does.
inline constexpr std::size_t kFineDescriptorBytes = 576;
inline constexpr std::size_t kCoarseDescriptorBytes = 64;

// What the zones' tables take of the range whatever its length.
inline constexpr std::size_t kRegionFixedBytes = 2 * kRecordWindowBytes;

class Region {
 public:
  constexpr Region()
      : fine_({kFineGranuleShift, kFineDescriptorBytes}),
        coarse_({kCoarseGranuleShift, kCoarseDescriptorBytes}) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Chooses all addresses, where nothing lies yet if it can; maps nothing. The
  // windows scale with the range that the platform offers (a 39-bit address
  // space gets smaller ones).
  void Place(VirtualMemory& memory);
  bool placed() const { return window_bytes_ != 0; }

  constexpr Zone& fine() { return fine_; }
  constexpr Zone& coarse() { return coarse_; }
  const Zone& fine() const { return fine_; }
  const Zone& coarse() const { return coarse_; }

  // The huge zone's window, and one for its tables.
  struct Window {
    Address begin = 0;
    std::size_t bytes = 0;
  };
  Window huge() const { return huge_; }
  Window huge_tables() const { return huge_tables_; }
  // For the heap layer's tables: heaps, magazines, parcels; and for a call
  // trace's rings.
  static constexpr unsigned kHeapWindows = 4;
  Window heap_window(unsigned index) const { return heap_windows_[index]; }

 private:
  Zone fine_;
  Zone coarse_;
  std::size_t window_bytes_ = 0;
  Window huge_;
  Window huge_tables_;
  Window heap_windows_[kHeapWindows];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_REGION_H_
