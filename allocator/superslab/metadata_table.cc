#include "allocator/superslab/metadata_table.h"

#include <algorithm>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// Growth steps: large enough that a table asks the kernel seldom, small enough
// to leave a tight address-space limit to the user. Only touched pages cost
// memory.
constexpr std::size_t kMinStepBytes = 64 * kKiB;
constexpr std::size_t kMaxStepBytes = 4 * kMiB;

}  // namespace

void MetadataTable::Place(Address base, std::size_t capacity_bytes,
                          std::size_t colour_bytes) {
  HAK_CHECK_EQ(mapped_bytes(), 0U);
  base_ = base;
  capacity_bytes_ = capacity_bytes;
  colour_bytes_ = colour_bytes;
}

VmStatus MetadataTable::EnsureMapped(VirtualMemory& memory, std::size_t bytes) {
  const std::size_t wanted_bytes = bytes + colour_bytes_;
  const std::size_t mapped = mapped_bytes();
  if (wanted_bytes <= mapped) return {};
  if (wanted_bytes > capacity_bytes_) return {ENOSPC};
  const std::size_t page_bytes = memory.PageBytes();
  const std::size_t least = RoundUp(wanted_bytes, page_bytes) - mapped;
  const std::size_t step = std::min(
      std::max({least, kMinStepBytes,
                RoundUp(std::min(mapped / 4, kMaxStepBytes), page_bytes)}),
      capacity_bytes_ - mapped);
  std::size_t grown = step;
  VmStatus status = memory.MapAt(base_ + mapped, grown);
  map_calls_.fetch_add(1, std::memory_order_relaxed);
  if (!status.ok() && least < step) {
    grown = least;
    status = memory.MapAt(base_ + mapped, grown);
    map_calls_.fetch_add(1, std::memory_order_relaxed);
  }
  if (!status.ok()) return status;
  mapped_bytes_.store(mapped + grown, std::memory_order_relaxed);
  return {};
}

void MetadataTable::CheckInvariants() const {
  HAK_CHECK_LE(mapped_bytes(), capacity_bytes_);  // MT1
}

}  // namespace hakmem
