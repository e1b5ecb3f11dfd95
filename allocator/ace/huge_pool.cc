#include "allocator/ace/huge_pool.h"

#include <algorithm>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/superslab/block_header.h"

namespace hakmem {
namespace {

// Ranges in use by others that Grant steps over before it gives up.
constexpr int kMaxForeignRanges = 64;
constexpr std::size_t kHugeHeaderColourBytes = 0x740;

constexpr HeaderByte kLiveHuge = MakeHeader(BlockState::kLive, kHugeCode);
constexpr HeaderByte kFreeHuge = MakeHeader(BlockState::kFree, kHugeCode);

}  // namespace

void HugePool::Place(const Region& region, std::size_t page_bytes) {
  window_ = region.huge();
  const Region::Window tables = region.huge_tables();
  const std::size_t frames = window_.bytes >> kSuperSlabShift;
  const std::size_t header_window = RoundUp(frames + page_bytes, page_bytes);
  header_table_.Place(tables.begin, header_window, kHugeHeaderColourBytes);
  record_table_.Place(
      tables.begin + header_window + page_bytes,
      RoundDown(tables.bytes - header_window - page_bytes, page_bytes), 0);
  headers_ =
      reinterpret_cast<std::atomic<std::uint8_t>*>(header_table_.start());
  records_ = reinterpret_cast<Record*>(record_table_.start());
}

HugePool::Frame HugePool::EndOf(Frame frame) const {
  return frame +
         static_cast<Frame>(
             DivideRoundUp(records_[frame].bytes, kSuperSlabBytes)) +
         1;
}

std::atomic<std::uint8_t>* HugePool::HeaderOf(Address address) const {
  if (!Contains(address) || !IsAligned<Address>(address, kSuperSlabBytes)) {
    return nullptr;
  }
  std::atomic<std::uint8_t>* header = headers_ + FrameOf(address);
  return header_table_.Contains(reinterpret_cast<Address>(header)) ? header
                                                                   : nullptr;
}

bool HugePool::IsLive(Address address) const {
  const auto* header = HeaderOf(address);
  return header != nullptr &&
         header->load(std::memory_order_relaxed) == kLiveHuge;
}

bool HugePool::WasFreed(Address address) const {
  const auto* header = HeaderOf(address);
  return header != nullptr &&
         header->load(std::memory_order_relaxed) == kFreeHuge;
}

std::size_t HugePool::BlockBytes(Address address) const {
  return records_[FrameOf(address)].bytes;
}

Address HugePool::BlockAround(Address address) const {
  for (Frame frame = first_; frame != kNone; frame = records_[frame].next) {
    if (address - AddressOf(frame) < records_[frame].bytes) {
      return AddressOf(frame);
    }
  }
  return 0;
}

// By the headers: the list may be changing. Frames that are not a block's first
// may bear the header of a block that was freed.
Address HugePool::OwnBlockAround(Address address) const {
  const std::size_t known_frames =
      header_table_.mapped_bytes() < kHugeHeaderColourBytes
          ? 0
          : header_table_.mapped_bytes() - kHugeHeaderColourBytes;
  std::size_t end = std::min(std::size_t{FrameOf(address)} + 1, known_frames);
  for (; end != 0; --end) {
    const auto frame = static_cast<Frame>(end - 1);
    if (headers_[frame].load(std::memory_order_relaxed) != kLiveHuge) continue;
    const Address start = AddressOf(frame);
    return address - start < BlockBytes(start) ? start : 0;
  }
  return 0;
}

Address HugePool::BlockBefore(Address address) const {
  Address before = 0;
  for (Frame frame = first_; frame != kNone; frame = records_[frame].next) {
    if (AddressOf(frame) > address) break;
    before = AddressOf(frame);
  }
  return before;
}

Address HugePool::FreedAround(Address address) const {
  constexpr Frame kMostFrames = 1U << 16;
  const Frame last = FrameOf(address);
  for (Frame back = 0; back <= last && back < kMostFrames; ++back) {
    const Address start = AddressOf(last - back);
    if (IsLive(start)) return 0;
    if (WasFreed(start)) return address - start < BlockBytes(start) ? start : 0;
  }
  return 0;
}

Address HugePool::NextBlock(Address address) const {
  for (Frame frame = first_; frame != kNone; frame = records_[frame].next) {
    if (AddressOf(frame) > address) return AddressOf(frame);
  }
  return 0;
}

// The first gap at or after frame `from` that holds the block and the free
// frame after it.
HugePool::Gap HugePool::FindGap(std::size_t bytes, Frame alignment_frames,
                                Frame from) const {
  const auto frames = DivideRoundUp(bytes, kSuperSlabBytes) + 1;
  const std::size_t window_frames = window_.bytes >> kSuperSlabShift;
  Frame after = kNone;
  Frame next = first_;
  std::size_t begin = 0;
  for (;;) {
    // Frames are aligned by address, not by their number.
    const Address aligned = RoundUp<Address>(
        AddressOf(static_cast<Frame>(std::max<std::size_t>(begin, from))),
        static_cast<Address>(alignment_frames) << kSuperSlabShift);
    const std::size_t start = (aligned - window_.begin) >> kSuperSlabShift;
    const std::size_t end = next == kNone ? window_frames : next;
    if (frames <= window_frames && start + frames <= end) {
      return {static_cast<Frame>(start), after, true};
    }
    if (next == kNone) return {0, kNone, false};
    begin = EndOf(next);
    after = next;
    next = records_[next].next;
  }
}

// Where to look next when something else is mapped at `begin`: its length is
// not known, so the steps double, up to some gigabytes.
HugePool::Frame HugePool::AfterForeign(Frame begin, Frame alignment_frames,
                                       int skipped) const {
  constexpr int kMaxDoublings = 10;
  const std::size_t step = std::size_t{alignment_frames}
                           << std::min(skipped, kMaxDoublings);
  return static_cast<Frame>(
      std::min(begin + step, window_.bytes >> kSuperSlabShift));
}

VmStatus HugePool::EnsureTables(VirtualMemory& memory, Frame frame) {
  VmStatus status = header_table_.EnsureMapped(memory, std::size_t{frame} + 1);
  if (status.ok()) {
    status = record_table_.EnsureMapped(
        memory, (std::size_t{frame} + 1) * sizeof(Record));
  }
  return status;
}

void HugePool::Link(Frame frame, Frame after, std::size_t bytes) {
  Record& record = records_[frame];
  record.bytes = bytes;
  record.use = {};
  record.previous = after;
  record.next = after == kNone ? first_ : records_[after].next;
  (after == kNone ? first_ : records_[after].next) = frame;
  if (record.next != kNone) records_[record.next].previous = frame;
  headers_[frame].store(kLiveHuge, std::memory_order_relaxed);
  mapped_bytes_ += bytes;
}

void HugePool::Unlink(Frame frame) {
  const Record& record = records_[frame];
  (record.previous == kNone ? first_ : records_[record.previous].next) =
      record.next;
  if (record.next != kNone) records_[record.next].previous = record.previous;
  headers_[frame].store(kFreeHuge, std::memory_order_relaxed);
  mapped_bytes_ -= record.bytes;
}

HugePool::Result HugePool::Grant(VirtualMemory& memory, std::size_t bytes,
                                 std::size_t alignment_bytes) {
  Result result;
  const auto alignment_frames =
      static_cast<Frame>(alignment_bytes >> kSuperSlabShift);
  Frame from = 0;
  for (int skipped = 0; skipped <= kMaxForeignRanges; ++skipped) {
    const Gap gap = FindGap(bytes, alignment_frames, from);
    if (!gap.found) {
      result.exhausted = true;
      return result;
    }
    result.status = EnsureTables(memory, gap.begin);
    if (!result.status.ok()) {
      result.tables = true;
      return result;
    }
    ++map_calls_;
    result.status = memory.MapAt(AddressOf(gap.begin), bytes);
    if (result.status.ok()) {
      Link(gap.begin, gap.after, bytes);
      result.address = AddressOf(gap.begin);
      return result;
    }
    if (result.status.error_number != EEXIST) return result;
    from = AfterForeign(gap.begin, alignment_frames, skipped);
  }
  return result;
}

std::size_t HugePool::Release(VirtualMemory& memory, Address address) {
  const Frame frame = FrameOf(address);
  const std::size_t bytes = records_[frame].bytes;
  Unlink(frame);
  ++unmap_calls_;
  // When the kernel refuses, the memory goes back and the addresses are lost:
  // Grant will find them in use and step over them.
  if (!memory.Unmap(address, bytes).ok()) memory.Purge(address, bytes);
  return bytes;
}

HugePool::Result HugePool::Grow(VirtualMemory& memory, Address address,
                                std::size_t bytes) {
  Record& record = records_[FrameOf(address)];
  const std::size_t frames = DivideRoundUp(bytes, kSuperSlabBytes) + 1;
  const std::size_t end =
      record.next == kNone ? window_.bytes >> kSuperSlabShift : record.next;
  if (FrameOf(address) + frames > end) return {};
  Result result;
  ++map_calls_;
  result.status = memory.MapAt(address + record.bytes, bytes - record.bytes);
  if (!result.status.ok()) return result;
  mapped_bytes_ += bytes - record.bytes;
  record.bytes = bytes;
  result.address = address;
  return result;
}

// Moves a block's pages to free addresses and maps the tail of its new length.
// EEXIST: something is in the way.
VmStatus HugePool::MovePages(VirtualMemory& memory, Address from, Address to,
                             std::size_t bytes) {
  const std::size_t old_bytes = BlockBytes(from);
  ++map_calls_;
  VmStatus status = memory.MapAt(to + old_bytes, bytes - old_bytes);
  if (!status.ok()) return status;
  // A move replaces whatever lies where it puts the pages, so that place is
  // claimed first; where addresses are short, just its first page.
  ++map_calls_;
  status = memory.MapAt(to, old_bytes);
  if (!status.ok() && status.error_number != EEXIST) {
    ++map_calls_;
    status = memory.MapAt(to, memory.PageBytes());
  }
  if (status.ok()) {
    ++move_calls_;
    status = memory.Move(from, to, old_bytes, /*keep_source=*/false);
    if (!status.ok() && !status.target_lost) memory.Unmap(to, old_bytes);
  }
  if (!status.ok()) memory.Unmap(to + old_bytes, bytes - old_bytes);
  return status;
}

HugePool::Result HugePool::MoveTo(VirtualMemory& memory, Address address,
                                  std::size_t bytes) {
  Result result;
  Frame from = 0;
  for (int skipped = 0; skipped <= kMaxForeignRanges; ++skipped) {
    const Gap gap = FindGap(bytes, 1, from);
    if (!gap.found) {
      result.exhausted = true;
      return result;
    }
    result.status = EnsureTables(memory, gap.begin);
    if (!result.status.ok()) {
      result.tables = true;
      return result;
    }
    const Address to = AddressOf(gap.begin);
    result.status = MovePages(memory, address, to, bytes);
    if (result.status.ok()) {
      // The gap's predecessor may be the block that just moved away.
      const Frame old = FrameOf(address);
      const Frame after = gap.after == old ? records_[old].previous : gap.after;
      const BlockUse use = records_[old].use;
      Unlink(old);
      Link(gap.begin, after, bytes);
      records_[gap.begin].use = use;
      result.address = to;
      return result;
    }
    if (result.status.error_number != EEXIST) return result;
    from = AfterForeign(gap.begin, 1, skipped);
  }
  return result;
}

HugePool::Result HugePool::Resize(VirtualMemory& memory, Address address,
                                  std::size_t bytes) {
  Record& record = records_[FrameOf(address)];
  if (bytes == record.bytes) return {.address = address, .status = {}};
  if (bytes < record.bytes) {
    ++unmap_calls_;
    if (memory.Unmap(address + bytes, record.bytes - bytes).ok()) {
      mapped_bytes_ -= record.bytes - bytes;
      record.bytes = bytes;
    }
    return {.address = address, .status = {}};
  }
  const Result grown = Grow(memory, address, bytes);
  if (grown.address != 0) return grown;
  return MoveTo(memory, address, bytes);
}

void HugePool::CheckInvariants() const {
  Frame previous = kNone;
  Frame end = 0;
  std::size_t bytes = 0;
  for (Frame frame = first_; frame != kNone; frame = records_[frame].next) {
    HAK_CHECK_EQ(records_[frame].previous, previous);  // L2
    HAK_CHECK_GE(frame, end);                          // L2
    HAK_CHECK_EQ(headers_[frame].load(std::memory_order_relaxed),
                 kLiveHuge);  // L1
    bytes += records_[frame].bytes;
    end = EndOf(frame);
    previous = frame;
  }
  HAK_CHECK_EQ(bytes, mapped_bytes_);
}

}  // namespace hakmem
