#include "allocator/ace/touched_pages.h"

#include <algorithm>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/platform/resident_pages.h"

namespace hakmem {
namespace {

// Up to this length, clearing everything is not dearer than asking the kernel
// what was touched (docs/decisions/0017), but in fresh memory.
constexpr std::size_t kClearedWholeBytes = 128 * kKiB;
// Pages that the kernel is asked about at once.
constexpr std::size_t kAskedPages = 512;
// Where a long range may be untouched nearly everywhere, so many of its pages
// tell, which is dearer than to look at all of them in a shorter one.
constexpr std::size_t kSampledBytes = 8 * kMiB;
constexpr std::size_t kSampledPages = 16;
// So many times an answer that came twice holds for the next ones; an odd
// number with the question, so that what comes by turns is found out.
constexpr std::uint8_t kMostUnasked = 4;
// So many untouched pages between touched ones are cleared with them.
constexpr std::size_t kShortGapPages = 4;
// Slices are longer from 128 GiB on, whose pages may never have been touched.
constexpr std::size_t kMostPurgeSlices = 4096;

void Clear(Address begin, std::size_t bytes) {
  ZeroBytes(reinterpret_cast<void*>(begin), bytes);
}

bool LooksUntouched(VirtualMemory& memory, Address begin, std::size_t bytes) {
  const std::size_t page_bytes = memory.PageBytes();
  const std::size_t stride_bytes = RoundDown(bytes / kSampledPages, page_bytes);
  for (std::size_t i = 0; i < kSampledPages; ++i) {
    const Address middle =
        begin + i * stride_bytes + RoundDown(stride_bytes / 2, page_bytes);
    unsigned char resident = 1;
    if (!memory.FindResident(middle, page_bytes, &resident).ok() ||
        resident != 0) {
      return false;
    }
  }
  return true;
}

// Nothing is known where there are more gaps, or pages at the start are out.
PagesInMemory OneGapOf(const unsigned char* resident, std::size_t count) {
  const unsigned char* const end = resident + count;
  const unsigned char* const out = std::find(resident, end, 0);
  const unsigned char* const in = std::find_if(
      out, end, [](unsigned char page_is) { return page_is != 0; });
  if (std::find(in, end, 0) != end || end - in > UINT8_MAX) return {};
  return {.at_start = static_cast<std::uint16_t>(out - resident),
          .at_end = static_cast<std::uint8_t>(end - in)};
}

}  // namespace

// Slices end where huge pages do. What is behind one that the kernel refused is
// as it was.
HAK_NOINLINE bool TouchedPages::Purge(Address begin, std::size_t bytes) {
  const std::size_t slice_bytes =
      std::max(kSliceBytes, bytes / kMostPurgeSlices);
  const Address end = begin + bytes;
  while (begin != end) {
    const Address to =
        end - begin <= slice_bytes
            ? end
            : RoundDown<Address>(begin + slice_bytes, kSuperSlabBytes);
    purge_calls_.fetch_add(1, std::memory_order_relaxed);
    if (!memory_.Purge(begin, to - begin).ok()) return false;
    begin = to;
  }
  return true;
}

// What is zero is not written. Each page is read, whatever the kernel says of
// it: one that is not in memory may be another process's, as of a userfaultfd
// or of a file that the program has mapped there.
void TouchedPages::CopyTouched(Address from, Address to, std::size_t bytes) {
  const std::size_t page_bytes = memory_.PageBytes();
  const std::size_t whole_bytes = RoundDown(bytes, page_bytes);
  std::size_t done = 0;
  if (Purge(to, whole_bytes)) {
    for (; done < whole_bytes; done += page_bytes) {
      const void* const source = reinterpret_cast<const void*>(from + done);
      if (FirstNonZero(source, page_bytes) == page_bytes) continue;
      std::memcpy(reinterpret_cast<void*>(to + done), source, page_bytes);
    }
  }
  std::memcpy(reinterpret_cast<void*>(to + done),
              reinterpret_cast<const void*>(from + done), bytes - done);
}

// To copy all takes a fault for each page that is not in memory, of either
// block; to copy what is not zero, one for each page of the source at least,
// but no memory for what is zero.
void TouchedPages::Copy(Address from, Address to, std::size_t bytes) {
  const std::size_t pages = bytes / memory_.PageBytes();
  if (bytes > kClearedWholeBytes) {
    const std::size_t source_pages =
        CountResidentPages(memory_, from, pages, /*otherwise=*/pages);
    const std::size_t target_pages =
        CountResidentPages(memory_, to, pages, /*otherwise=*/pages);
    if (2 * source_pages + target_pages < 2 * pages) {
      CopyTouched(from, to, bytes);
      return;
    }
  }
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from),
              bytes);
}

// What was in memory mostly is so still: swap, a move of pages and the program
// take it out, so callers forget it in time. What was not may be by now: given
// back unasked, it is touched dearly once more, until the next question.
bool TouchedPages::ClearUnasked(Address begin, std::size_t bytes,
                                PagesInMemory& known) {
  const std::size_t page_bytes = memory_.PageBytes();
  const Address from = begin + known.at_start * page_bytes;
  const Address to =
      begin + RoundDown(bytes, page_bytes) - known.at_end * page_bytes;
  if (from >= to) {
    Clear(begin, bytes);
    return true;
  }
  if (known.unasked == kMostUnasked) return false;
  ++known.unasked;
  if (!Purge(from, to - from)) return false;
  Clear(begin, from - begin);
  Clear(to, begin + bytes - to);
  return true;
}

// A page that is not in memory may be in swap; given back, it is not.
void TouchedPages::ClearTouched(Address begin, std::size_t bytes, bool fresh,
                                PagesInMemory* known) {
  if (!fresh && bytes <= kClearedWholeBytes) {
    Clear(begin, bytes);
    return;
  }
  const std::size_t page_bytes = memory_.PageBytes();
  const std::size_t pages = bytes / page_bytes;
  const std::size_t whole_bytes = pages * page_bytes;
  if (pages > kAskedPages) known = nullptr;
  if (known != nullptr && !fresh && known->at_start != 0 &&
      ClearUnasked(begin, bytes, *known)) {
    return;
  }
  if (bytes >= kSampledBytes && LooksUntouched(memory_, begin, bytes) &&
      Purge(begin, whole_bytes)) {
    Clear(begin + whole_bytes, bytes - whole_bytes);
    return;
  }
  unsigned char resident[kAskedPages];
  for (std::size_t asked = 0; asked < pages; asked += kAskedPages) {
    const std::size_t count = std::min(pages - asked, kAskedPages);
    const Address chunk = begin + asked * page_bytes;
    if (!memory_.FindResident(chunk, count * page_bytes, resident).ok()) {
      Clear(chunk, count * page_bytes);
      continue;
    }
    if (known != nullptr) {
      const PagesInMemory now = OneGapOf(resident, count);
      const bool same =
          now.at_start == known->at_start && now.at_end == known->at_end;
      *known = now;
      known->unasked = same ? 0 : kMostUnasked;
    }
    for (std::size_t page = 0; page < count;) {
      const unsigned char touched = resident[page];
      std::size_t end = page + 1;
      while (end < count && resident[end] == touched) ++end;
      const Address run = chunk + page * page_bytes;
      const std::size_t run_bytes = (end - page) * page_bytes;
      const bool short_gap = page != 0 && end - page <= kShortGapPages;
      if (touched != 0 || short_gap || !Purge(run, run_bytes)) {
        Clear(run, run_bytes);
      }
      page = end;
    }
  }
  if (whole_bytes != bytes) Clear(begin + whole_bytes, bytes - whole_bytes);
}

void TouchedPages::GiveBack(Address begin, std::size_t bytes,
                            std::uint64_t most_cleared_bytes) {
  const Address end = begin + bytes;
  const Address from = RoundUp<Address>(begin, memory_.PageBytes());
  const Address to = RoundDown<Address>(end, memory_.PageBytes());
  if (!Purge(from, to - from)) {
    Clear(begin, std::min<std::uint64_t>(bytes, most_cleared_bytes));
    return;
  }
  Clear(begin, from - begin);
  Clear(to, end - to);
}

void TouchedPages::DropTail(Address begin, std::size_t bytes,
                            std::uint64_t most_cleared_bytes) {
  if (bytes > kClearedWholeBytes) {
    return GiveBack(begin, bytes, most_cleared_bytes);
  }
  Clear(begin, std::min<std::uint64_t>(bytes, most_cleared_bytes));
}

}  // namespace hakmem
