#include "allocator/superslab/region.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// The fine and coarse zones' windows; the huge zone has four of them. More
// would only thin out the randomness of the base.
constexpr std::size_t kMaxWindowBytes = 4096 * kGiB;
constexpr std::size_t kHugeWindows = 4;
// Windows and tables take less than 7 window sizes and kRegionFixedBytes.
constexpr std::size_t kRangeShare = 12;
// Where addresses are few (39 bits: a range of 144 GiB), a zone must hold all
// of a machine's memory: two ninths for each zone of slabs, a third for Huge
// blocks. Zones and tables take 6/7 of the range.
constexpr std::size_t kLeastNarrowBytes = 64 * kGiB;
constexpr std::size_t kMostNarrowBytes = 1023 * kGiB;
constexpr std::size_t kNarrowZoneParts = 2;
constexpr std::size_t kNarrowHugeParts = 3;
constexpr std::size_t kNarrowParts = 9;
// How many places are looked at before one is taken in which something lies.
// Under valgrind, whose own memory lies in the range, three of four are.
constexpr int kMaxPlaces = 64;
// What lies in the range may grow, as valgrind does from the first call on.
constexpr std::size_t kDistanceBytes = 256 * kMiB;
// After each window.
constexpr std::size_t kGapBytes = kSuperSlabBytes;
// Per huge frame: a header byte and a record (ace/huge_pool.h).
constexpr std::size_t kHugeTableBytesPerFrame = 64;

Address OffsetOf(std::uint64_t random, std::size_t slack_bytes) {
  const std::uint64_t choices = slack_bytes / kSuperSlabBytes + 1;
  return (random % choices) * kSuperSlabBytes;
}

}  // namespace

void Region::SetLengths(std::size_t page_bytes, const Config& config) {
  const auto frames = static_cast<FrameIndex>(window_bytes_ >> kSuperSlabShift);
  const auto set = [this](unsigned index, std::size_t bytes) {
    windows_[index].bytes = RoundUp(bytes, kSuperSlabBytes);
  };
  set(kBlocks, 2 * window_bytes_ + huge_.bytes);
  for (unsigned i = 0; i < Zone::kTableWindows; ++i) {
    set(kFineTables + i,
        Zone::TableBytes(fine_.shape(), i, frames, page_bytes));
    set(kCoarseTables + i,
        Zone::TableBytes(coarse_.shape(), i, frames, page_bytes));
  }
  set(kHugeTables, (huge_.bytes >> kSuperSlabShift) * kHugeTableBytesPerFrame);
  for (unsigned i = 0; i < kHeapWindows; ++i) {
    set(kHeap + i, window_bytes_ / 64);
  }
  if (config.inaccessible_empty_blocks) {
    set(kEmptyBlocks, window_bytes_ / 64);
    set(kEmptyTables, window_bytes_ / 64);
  }
}

// In a random order of windows, those before one take what they need, and the
// gaps before it what its random number says: the numbers, sorted, share out
// what is left of the range.
void Region::SetPlaces(VirtualMemory& memory, Address begin,
                       std::size_t range_bytes, bool scattered) {
  std::size_t slack = range_bytes;
  for (const Window& window : windows_) slack -= window.bytes + kGapBytes;
  std::uint8_t order[kWindows];
  Address offsets[kWindows];
  // Those of the offsets, and those of the order.
  std::uint64_t random[2 * kWindows] = {};
  memory.FillRandom(random, scattered ? 2 * kWindows : 2);
  for (unsigned i = 0; i < kWindows; ++i) {
    order[i] = static_cast<std::uint8_t>(i);
    // The tables lie after the blocks, at a distance of their own.
    offsets[i] = scattered ? OffsetOf(random[i], slack)
                 : i == 0  ? OffsetOf(random[i], slack / 2)
                 : i == 1  ? offsets[0] + OffsetOf(random[i], slack / 2)
                           : offsets[1];
  }
  if (scattered) {
    // Not by std::less, which libc++ has compiled into its shared library.
    std::sort(offsets, offsets + kWindows,
              [](Address a, Address b) { return a < b; });
    for (unsigned i = kWindows - 1; i > 0; --i) {
      std::swap(order[i], order[random[kWindows + i] % (i + 1)]);
    }
  }
  for (unsigned i = 0; i < kWindows; ++i) {
    windows_[order[i]].begin = begin + offsets[i];
    begin += windows_[order[i]].bytes + kGapBytes;
  }
}

bool Region::IsUntaken(VirtualMemory& memory) const {
  return std::none_of(windows_, windows_ + kWindows, [&](const Window& window) {
    return window.bytes != 0 &&
           memory.IsTaken(window.begin - kDistanceBytes,
                          window.bytes + 2 * kDistanceBytes);
  });
}

void Region::Place(VirtualMemory& memory, const Config& config) {
  const auto range = memory.RegionRange();
  const std::size_t page_bytes = memory.PageBytes();
  const Address begin = RoundUp<Address>(range.begin, kSuperSlabBytes);
  const std::size_t range_bytes = range.end - begin;
  HAK_CHECK_GT(range_bytes, kRegionFixedBytes);
  const bool narrow =
      range_bytes >= kLeastNarrowBytes && range_bytes <= kMostNarrowBytes;
  const std::size_t part =
      RoundDown(range_bytes / kNarrowParts, kSuperSlabBytes);
  window_bytes_ =
      narrow ? kNarrowZoneParts * part
             : std::min(kMaxWindowBytes,
                        std::bit_floor((range_bytes - kRegionFixedBytes) /
                                       kRangeShare));
  huge_.bytes = narrow ? kNarrowHugeParts * part : kHugeWindows * window_bytes_;
  if (config.check_bounds) {
    fine_.KeepBounds();
    coarse_.KeepBounds();
  }
  SetLengths(page_bytes, config);
  const bool empty = !memory.IsTaken(begin, range_bytes);
  for (int tries = 0; tries < kMaxPlaces; ++tries) {
    SetPlaces(memory, begin, range_bytes, config.scattered_tables);
    if (empty || IsUntaken(memory)) break;
  }
  const auto place = [&](Zone& zone, Address base, unsigned tables) {
    Address begins[Zone::kTableWindows];
    for (unsigned i = 0; i < Zone::kTableWindows; ++i) {
      begins[i] = windows_[tables + i].begin;
    }
    zone.Place(base, static_cast<FrameIndex>(window_bytes_ >> kSuperSlabShift),
               begins, page_bytes);
  };
  const Address base = windows_[kBlocks].begin;
  place(fine_, base, kFineTables);
  place(coarse_, base + window_bytes_, kCoarseTables);
  huge_.begin = base + 2 * window_bytes_;
}

}  // namespace hakmem
