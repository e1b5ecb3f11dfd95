#include "allocator/superslab/region.h"

#include <algorithm>
#include <bit>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// The fine and coarse zones' windows; the huge zone has four of them. More
// would only thin out the randomness of the base.
constexpr std::size_t kMaxWindowBytes = 4096 * kGiB;
constexpr std::size_t kHugeWindows = 4;
// Windows and tables together take less than 7 window sizes and
// kRegionFixedBytes; the rest of the range is left to chance.
constexpr std::size_t kRangeShare = 12;
// How many places are looked at before one is taken in which something lies.
// Under valgrind, whose own memory lies in the range, two of three are such.
constexpr int kMaxPlaces = 64;
// Per huge frame: a header byte and a record (ace/huge_pool.h).
constexpr std::size_t kHugeTableBytesPerFrame = 64;

Address RandomOffset(VirtualMemory& memory, std::size_t slack_bytes) {
  const std::uint64_t choices = slack_bytes / kSuperSlabBytes + 1;
  return (memory.Random() % choices) * kSuperSlabBytes;
}

}  // namespace

void Region::Place(VirtualMemory& memory) {
  const auto range = memory.RegionRange();
  const std::size_t page_bytes = memory.PageBytes();
  const Address begin = RoundUp<Address>(range.begin, kSuperSlabBytes);
  const std::size_t range_bytes = range.end - begin;
  HAK_CHECK_GT(range_bytes, kRegionFixedBytes);
  const std::size_t window_bytes =
      std::min(kMaxWindowBytes,
               std::bit_floor((range_bytes - kRegionFixedBytes) / kRangeShare));
  const auto frames = static_cast<FrameIndex>(window_bytes >> kSuperSlabShift);

  const auto in_frames = [](std::size_t bytes) {
    return RoundUp(bytes, kSuperSlabBytes) + kSuperSlabBytes;
  };
  const std::size_t fine_tables = in_frames(Zone::TableBytes(
      {kFineGranuleShift, kFineDescriptorBytes}, frames, page_bytes));
  const std::size_t coarse_tables = in_frames(Zone::TableBytes(
      {kCoarseGranuleShift, kCoarseDescriptorBytes}, frames, page_bytes));
  const std::size_t huge_tables =
      in_frames(kHugeWindows * frames * kHugeTableBytesPerFrame);
  const std::size_t heap_window = in_frames(window_bytes / 64);
  const std::size_t blocks = (2 + kHugeWindows) * window_bytes;
  const std::size_t tables =
      fine_tables + coarse_tables + huge_tables + kHeapWindows * heap_window;

  // The tables lie after the blocks, at a distance of their own.
  const std::size_t slack = range_bytes - blocks - tables;
  Address base = 0;
  Address next = 0;
  for (int tries = 0; tries < kMaxPlaces; ++tries) {
    base = begin + RandomOffset(memory, slack / 2);
    next = base + blocks + RandomOffset(memory, slack / 2);
    if (!memory.IsTaken(base, blocks) && !memory.IsTaken(next, tables)) break;
  }
  const auto take = [&next](std::size_t bytes) {
    const Address at = next;
    next += bytes;
    return at;
  };
  fine_.Place(base, frames, take(fine_tables), page_bytes);
  coarse_.Place(base + window_bytes, frames, take(coarse_tables), page_bytes);
  huge_ = {base + 2 * window_bytes, kHugeWindows * window_bytes};
  huge_tables_ = {take(huge_tables), huge_tables - kSuperSlabBytes};
  for (Window& window : heap_windows_) {
    window = {take(heap_window), heap_window - kSuperSlabBytes};
  }
  window_bytes_ = window_bytes;
}

}  // namespace hakmem
