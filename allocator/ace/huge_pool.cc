#include "allocator/ace/huge_pool.h"

#include <algorithm>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/skip_zeros.h"
#include "allocator/base/units.h"
#include "allocator/superslab/block_header.h"

namespace hakmem {
namespace {

// How many places in use by others are tried before a request is given up.
constexpr unsigned kMaxTries = 64;
// The longest step, as a share of the window: the tries come to its end.
constexpr std::size_t kStepShare = 32;
// How many gaps are looked at under Ace's lock while others have to wait.
constexpr unsigned kMaxGaps = 8192;
constexpr std::size_t kHugeHeaderColourBytes = 0x740;

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
  const std::size_t bytes = records_[frame].bytes;
  return frame + static_cast<Frame>(DivideRoundUp(bytes, kSuperSlabBytes)) + 1;
}

std::atomic<HeaderByte>* HugePool::HeaderOf(Address address) const {
  if (!Contains(address) || !IsAligned<Address>(address, kSuperSlabBytes)) {
    return nullptr;
  }
  std::atomic<HeaderByte>* header = headers_ + FrameOf(address);
  return header_table_.Contains(reinterpret_cast<Address>(header)) ? header
                                                                   : nullptr;
}

BlockState HugePool::StateOf(Address address) const {
  const auto* header = HeaderOf(address);
  return HeaderState(
      header == nullptr ? kNoBlock : header->load(std::memory_order_relaxed));
}

std::size_t HugePool::BytesOf(Address address) const {
  if (StateOf(address) == BlockState::kFree) return 0;
  return records_[FrameOf(address)].bytes;
}

// Frames that are not a block's first may bear the header of a block that was
// freed. The address may be in memory that somebody else has mapped far behind
// all blocks.
HugePool::Found HugePool::Find(Address address) const {
  const std::size_t mapped = header_table_.mapped_bytes();
  const std::size_t known_frames =
      mapped - std::min(mapped, kHugeHeaderColourBytes);
  const std::size_t last = FrameOf(address);
  const std::size_t first =
      last - std::min<std::size_t>(last, longest_frames_ + 1);
  Found freed;
  for (std::size_t end = std::min(last + 1, known_frames); end > first;) {
    end = SkipZerosBack(headers_, end - 1, first);
    const Address start = AddressOf(static_cast<Frame>(end));
    if (headers_[end].load(std::memory_order_relaxed) == kNoBlock) break;
    const std::size_t bytes = records_[end].bytes;
    const Found found = {start, bytes, IsLive(start), address - start < bytes};
    if (found.live) return found.inside || freed.start == 0 ? found : freed;
    if (found.inside && freed.start == 0) freed = found;
  }
  return freed;
}

Address HugePool::NextBlock(Address address) const {
  Frame frame = first_;
  if (Contains(address) && frame != kNone) {
    // By the headers, back to one of the list, to begin behind it.
    Frame at = std::min(FrameOf(address), last_);
    while (at > frame && BytesOf(AddressOf(at)) == 0) {
      at = static_cast<Frame>(SkipZerosBack(headers_, at - 1, frame));
    }
    if (at >= frame) frame = records_[at].next;
  }
  while (frame != kNone && (AddressOf(frame) <= address ||
                            StateOf(AddressOf(frame)) != BlockState::kLive)) {
    frame = records_[frame].next;
  }
  return frame == kNone ? 0 : AddressOf(frame);
}

// It has become longer.
void HugePool::NoteGap(Frame before) {
  if (search_from_ != kNone && (before == kNone || before < search_from_)) {
    search_from_ = before;
  }
}

// The first gap at or after frame `from` that holds the block and the free
// frame after it. Where so many do not, the one behind all blocks comes next.
HugePool::Gap HugePool::FindGap(std::size_t bytes, Frame alignment_frames,
                                Frame from) {
  const std::size_t frames = DivideRoundUp(bytes, kSuperSlabBytes) + 1;
  if (frames > window_frames()) return {0, kNone, false};
  unsigned seen = 0;
  for (Frame before = search_from_;; before = Next(before)) {
    // Frames are aligned by address, not by their number.
    const Address aligned = RoundUp<Address>(
        AddressOf(std::max(GapBegin(before), from)),
        static_cast<Address>(alignment_frames) << kSuperSlabShift);
    const std::size_t begin = (aligned - window_.begin) >> kSuperSlabShift;
    if (begin + frames <= GapEnd(before)) {
      return {static_cast<Frame>(begin), before, true};
    }
    if (before == last_) return {0, kNone, false};
    if (before == search_from_ && !HasGap(before)) {
      search_from_ = Next(before);
    }
    if (++seen == kMaxGaps &&
        frames + alignment_frames + std::max(GapBegin(last_), from) <=
            window_frames()) {
      before = records_[last_].previous;
    }
  }
}

// Something else is mapped in the place at `begin`. Its length is not known,
// nor whether gaps between blocks have more of it, so the steps double.
void HugePool::StepOver(Search& search, Frame begin) const {
  const std::size_t step = std::max<std::size_t>(
      std::min(std::size_t{1} << search.tries++, window_frames() / kStepShare),
      search.alignment_frames);
  search.from = static_cast<Frame>(std::min(begin + step, window_frames()));
}

// Finds addresses, and makes room for them in the tables. False: `refusal` says
// why not.
bool HugePool::FindPlace(std::size_t bytes, Search& search, Gap& gap,
                         Refusal& refusal) {
  if (search.tries == kMaxTries) return false;
  gap = FindGap(bytes, search.alignment_frames, search.from);
  // After steps, what was stepped over is the reason.
  if (!gap.found && search.tries == 0) {
    refusal = UsedUp(/*tables=*/false, bytes);
  }
  if (!gap.found) return false;
  const std::size_t frames = std::size_t{gap.begin} + 1;
  VmStatus status = header_table_.EnsureMapped(memory_, frames);
  if (status.ok()) {
    status = record_table_.EnsureMapped(memory_, frames * sizeof(Record));
  }
  if (!status.ok()) refusal = RefusedTable(status, bytes);
  return status.ok();
}

void HugePool::SetBytes(Record& record, std::size_t bytes) {
  const auto frames = static_cast<Frame>(DivideRoundUp(bytes, kSuperSlabBytes));
  longest_frames_ = std::max<Frame>(longest_frames_, frames);
  record.bytes = bytes;
}

// The header is the caller's to set.
void HugePool::Link(Frame frame, Frame after, std::size_t bytes) {
  Record& record = records_[frame];
  SetBytes(record, bytes);
  record.use = {};
  record.releaser = nullptr;
  record.previous = after;
  record.next = after == kNone ? first_ : records_[after].next;
  (after == kNone ? first_ : records_[after].next) = frame;
  (record.next == kNone ? last_ : records_[record.next].previous) = frame;
  ++block_count_;
}

void HugePool::Unlink(Frame frame) {
  const Record& record = records_[frame];
  (record.previous == kNone ? first_ : records_[record.previous].next) =
      record.next;
  (record.next == kNone ? last_ : records_[record.next].previous) =
      record.previous;
  if (search_from_ == frame) search_from_ = record.previous;
  NoteGap(record.previous);
  --block_count_;
}

BlockGrant HugePool::Grant(std::size_t bytes, std::size_t alignment_bytes) {
  BlockGrant grant;
  Search search = {static_cast<Frame>(alignment_bytes >> kSuperSlabShift)};
  Gap gap;
  while (FindPlace(bytes, search, gap, grant.refusal)) {
    Count(map_calls_);
    const VmStatus status = memory_.MapBlock(AddressOf(gap.begin), bytes);
    if (status.ok()) {
      Link(gap.begin, gap.after, bytes);
      SetHeader(gap.begin, kLiveLarge);
      mapped_bytes_ += bytes;
      return {.address = AddressOf(gap.begin)};
    }
    grant.refusal = RefusedByKernel(status);
    if (status.error_number != EEXIST) break;
    StepOver(search, gap.begin);
  }
  return grant;
}

// While the kernel unmaps pages, nobody can map others, and who waits for that
// has Ace's lock. So most of the pages of a long range go back before, slice by
// slice, and others come in between. Where the kernel refuses, the call that
// unmaps has more to do.
VmStatus HugePool::UnmapInSlices(Address begin, std::size_t bytes) {
  if (bytes > TouchedPages::kSliceBytes) {
    const Address last = RoundUp<Address>(
        begin + bytes - TouchedPages::kSliceBytes, kSuperSlabBytes);
    pages_.Purge(begin, last - begin);
  }
  Count(unmap_calls_);
  return memory_.Unmap(begin, bytes);
}

// When the kernel refuses, the memory goes back and the addresses are lost:
// Grant will find them in use and step over them.
void HugePool::UnmapOrPurge(Address begin, std::size_t bytes) {
  if (!UnmapInSlices(begin, bytes).ok()) pages_.Purge(begin, bytes);
}

std::size_t HugePool::Release(Address address, std::size_t lost_bytes) {
  const Frame frame = FrameOf(address);
  Record& record = records_[frame];
  const std::size_t bytes = record.bytes;
  SetHeader(frame, kFreeLarge);
  ++changing_;
  record.releaser = FutexLock::Mark();
  record.lost_bytes = lost_bytes;
  if (lost_bytes != bytes) {
    const FutexLockPause pause(lock_);
    UnmapOrPurge(address + lost_bytes, bytes - lost_bytes);
    record.lost_bytes = bytes;
  }
  return EndRelease(frame);
}

// Its pages are nobody's, and its place can be had.
std::size_t HugePool::EndRelease(Frame frame) {
  const std::size_t bytes = records_[frame].bytes;
  --changing_;
  Unlink(frame);
  mapped_bytes_ -= bytes;
  return bytes;
}

// What is unmapped already may be somebody else's. A block that was being
// resized is its thread's for good.
std::size_t HugePool::EndReleasesAfterFork() {
  std::size_t released_bytes = 0;
  for (Frame frame = first_; changing_ != 0 && frame != kNone;
       frame = records_[frame].next) {
    const Record& record = records_[frame];
    if (record.releaser != nullptr && record.releaser != FutexLock::Mark()) {
      const std::size_t lost_bytes = record.lost_bytes;
      if (lost_bytes != record.bytes) {
        UnmapOrPurge(AddressOf(frame) + lost_bytes, record.bytes - lost_bytes);
      }
      released_bytes += EndRelease(frame);
    }
  }
  return released_bytes;
}

bool HugePool::Grow(Address address, std::size_t bytes) {
  Record& record = records_[FrameOf(address)];
  const std::size_t frames = DivideRoundUp(bytes, kSuperSlabBytes) + 1;
  if (FrameOf(address) + frames > GapEnd(FrameOf(address))) return false;
  Count(map_calls_);
  const bool grows =
      memory_.MapBlock(address + record.bytes, bytes - record.bytes).ok();
  if (grows) SetBytes(record, bytes);
  return grows;
}

// Moves a block's pages to free addresses and maps the tail of its new length.
// EEXIST: something is in the way.
VmStatus HugePool::MovePages(Address from, Address to, std::size_t bytes) {
  const std::size_t old_bytes = records_[FrameOf(from)].bytes;
  Count(map_calls_);
  VmStatus status = memory_.MapBlock(to + old_bytes, bytes - old_bytes);
  if (!status.ok()) return status;
  // A move replaces whatever lies where it puts the pages, so that place is
  // claimed first; where addresses are short, just its first page.
  Count(map_calls_);
  const VmStatus whole = memory_.MapBlock(to, old_bytes);
  status = whole;
  if (!status.ok() && status.error_number != EEXIST) {
    Count(map_calls_);
    status = memory_.MapAt(to, memory_.PageBytes());
  }
  if (status.ok()) {
    Count(move_calls_);
    status = memory_.Move(from, to, old_bytes, /*keep_source=*/false);
    // A block that was moved before is several mappings, which Linux before
    // 6.17 does not move at once. A filter of system calls, or the limit on
    // mappings, may refuse the move as well.
    if (!status.ok() && !status.target_lost) {
      pages_.CopyTouched(from, to, old_bytes);
      UnmapOrPurge(from, old_bytes);
      status = {};
    }
    // There was no room to copy to: that is what could be changed.
    if (!status.ok() && !whole.ok()) status = whole;
  }
  if (!status.ok()) {
    Count(unmap_calls_);
    memory_.Unmap(to + old_bytes, bytes - old_bytes);
  }
  return status;
}

// The new place is taken, and in no state, while the pages move.
BlockGrant HugePool::MoveTo(Address address, std::size_t bytes) {
  BlockGrant grant;
  const Frame old = FrameOf(address);
  Search search = {1};
  Gap gap;
  while (FindPlace(bytes, search, gap, grant.refusal)) {
    const Address to = AddressOf(gap.begin);
    Link(gap.begin, gap.after, bytes);
    ++changing_;
    VmStatus status;
    {
      const FutexLockPause pause(lock_);
      status = MovePages(address, to, bytes);
    }
    --changing_;
    if (status.ok()) {
      records_[gap.begin].use = records_[old].use;
      Unlink(old);
      SetHeader(gap.begin, headers_[old].load(std::memory_order_relaxed));
      SetHeader(old, kFreeLarge);
      return {.address = to};
    }
    Unlink(gap.begin);
    grant.refusal = RefusedByKernel(status);
    if (status.error_number != EEXIST) break;
    StepOver(search, gap.begin);
  }
  return grant;
}

void HugePool::Shrink(Frame frame, std::size_t bytes) {
  Record& record = records_[frame];
  const std::size_t less_bytes = record.bytes - bytes;
  {
    const FutexLockPause pause(lock_);
    if (!UnmapInSlices(AddressOf(frame) + bytes, less_bytes).ok()) return;
  }
  mapped_bytes_ -= less_bytes;
  record.bytes = bytes;
  NoteGap(frame);
}

BlockGrant HugePool::Resize(Address address, std::size_t bytes) {
  const std::size_t old_bytes = records_[FrameOf(address)].bytes;
  if (bytes < old_bytes) Shrink(FrameOf(address), bytes);
  if (bytes <= old_bytes) return {.address = address};
  mapped_bytes_ += bytes - old_bytes;
  if (Grow(address, bytes)) return {.address = address};
  const BlockGrant grant = MoveTo(address, bytes);
  if (grant.address == 0) mapped_bytes_ -= bytes - old_bytes;
  return grant;
}

void HugePool::CheckInvariants() const {
  Frame previous = kNone;
  Frame end = 0;
  std::size_t blocks = 0;
  std::size_t bytes = 0;
  std::uint32_t changing = 0;
  for (Frame frame = first_; frame != kNone; frame = records_[frame].next) {
    HAK_CHECK_EQ(records_[frame].previous, previous);  // HU2
    HAK_CHECK_GE(frame, end);                          // HU2
    if (BytesOf(AddressOf(frame)) == 0) ++changing;
    bytes += records_[frame].bytes;
    ++blocks;
    end = EndOf(frame);
    previous = frame;
  }
  HAK_CHECK_EQ(last_, previous);
  HAK_CHECK_EQ(blocks, block_count_);
  HAK_CHECK_EQ(changing, changing_);  // HU1
  if (changing_ == 0) HAK_CHECK_EQ(bytes, mapped_bytes_);
  for (Frame before = kNone; before != search_from_; before = Next(before)) {
    HAK_CHECK(!HasGap(before));  // HU3
  }
}

}  // namespace hakmem
