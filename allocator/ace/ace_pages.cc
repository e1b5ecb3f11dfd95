// Ace: pages before they are needed, and huge ones.

#include "allocator/ace/ace.h"
#include "allocator/platform/resident_pages.h"

namespace hakmem {
namespace {

// HAKMEM_HUGE_PAGES=auto: a zone's next frames have huge pages in a heap of
// this size, of which little is free, if the frame before them is full of pages
// (docs/decisions/0014).
constexpr std::uint64_t kLeastHugeHeapUnits = 16 * kMiB / kUnitBytes;
constexpr std::uint64_t kMostFreeShare = 8;
constexpr std::size_t kDenseBytes = kSuperSlabBytes / 4 * 3;

}  // namespace

// Guards would split the huge pages of spans, and so would giving back at once.
bool Ace::WantsHugePages(const ZoneStock& stock, FrameIndex next) const {
  if (huge_pages_ != HugePages::kAuto) return huge_pages_ == HugePages::kOn;
  return next != 0 && decay_ms_ != 0 && granted_units_ >= kLeastHugeHeapUnits &&
         !stock.guarded &&
         stock.pool.free_units() <= granted_units_ / kMostFreeShare &&
         IsDense(stock.zone, next - 1);
}

// Slabs that were granted, and of which few blocks are in use, would take all
// their memory.
bool Ace::IsDense(const Zone& zone, FrameIndex frame) const {
  if (zone.super_slab(frame).presence != Presence::kMapped) return false;
  const std::size_t page_bytes = memory_.PageBytes();
  const std::size_t pages =
      CountResidentPages(memory_, zone.FrameAddress(frame),
                         kSuperSlabBytes / page_bytes, /*otherwise=*/0);
  return pages * page_bytes >= kDenseBytes;
}

// For frames that were just mapped. Once a zone has huge pages, all later
// frames have: so they make no more than two mappings of a zone, and a heap of
// that size stays large.
void Ace::AskForHugePages(ZoneStock& stock, FrameIndex first,
                          FrameIndex frames) {
  if (!stock.pool.IsHuge(first)) {
    if (first + frames != stock.zone.frame_count() ||
        !WantsHugePages(stock, first)) {
      return;
    }
    stock.pool.SetHugeFrom(first);
  }
  memory_.AskForHugePages(stock.zone.FrameAddress(first),
                          frames * kSuperSlabBytes);
}

// The Huge block at `address` has an addition that is not asked for yet.
void Ace::AskForHugePagesOf(Address address) {
  if (huge_pages_ != HugePages::kOn) return;
  memory_.AskForHugePages(address, huge_.BlockBytes(address));
}

// Prefaults memory that has no pages yet. A slab is at most half a SuperSlab.
void Ace::Prefault(const Zone& zone, const Grant& grant, std::uint32_t units) {
  if (grant.first == kNoUnit || !grant.known_zero) return;
  GiveMemory(zone.UnitAddress(grant.first),
             units * kUnitBytes - grant.guard_bytes);
}

// What has pages counts as dirty, and so goes back when it stays idle; more of
// it than the bound on dirty memory allows would go back at once.
void Ace::PopulateAhead(ZoneStock& stock, std::uint64_t units) {
  if (prefault_ == Prefaulting::kOff || decay_ms_ == 0) return;
  const auto fill = [this](Address begin, std::size_t bytes) {
    GiveMemory(begin, bytes);
  };
  for (std::uint64_t done = 0; done < units; done += kUnitsPerSuperSlab) {
    if (ExcessUnits() + kUnitsPerSuperSlab > 0) return;
    if (!stock.pool.FillFrame(fill)) return;
    // As freed memory, it has an interval to be asked for in.
    last_release_ms_ = memory_.NowMs();
  }
}

// Gives pages that have none memory, as the option says.
void Ace::GiveMemory(Address begin, std::size_t bytes) {
  if (prefault_ == Prefaulting::kPopulate) {
    memory_.Populate(begin, bytes);
    return;
  }
  const std::size_t page_bytes = memory_.PageBytes();
  for (Address page = begin; page < begin + bytes; page += page_bytes) {
    *reinterpret_cast<volatile char*>(page) = 0;
  }
}

}  // namespace hakmem
