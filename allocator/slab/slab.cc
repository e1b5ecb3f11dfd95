#include "allocator/slab/slab.h"

#include <algorithm>
#include <bit>

#include "allocator/base/check.h"

namespace hakmem {

void Slab::Start(SizeClass size_class, UnitIndex first_unit,
                 std::uint32_t guard_bytes) {
  const ClassLayout& layout = kClassLayouts[size_class];
  size_class_ = size_class;
  capacity_ = static_cast<std::uint16_t>(
      guard_bytes == 0 ? layout.capacity
                       : (layout.slab_units * kUnitBytes - guard_bytes) /
                             layout.block_bytes);
  first_unit_ = first_unit;
  next = kNoUnit;
  previous = kNoUnit;
  bucket = 0;
  looks = 0;
  bump_ = 0;
  free_count_ = 0;
  summary_ = 0;
  std::fill_n(words(), WordCount(), std::uint64_t{0});
}

// Writes from `end` downwards.
void Slab::TakeFromBitmap(Address base, void** end, std::uint32_t count) {
  const std::size_t block_bytes = ClassBytes(size_class_);
  free_count_ -= count;
  std::uint64_t summary = summary_;
  while (count != 0) {
    const auto word_index = static_cast<unsigned>(std::countr_zero(summary));
    const Address word_base = base + 64 * block_bytes * word_index;
    std::uint64_t word = words()[word_index];
    do {
      const auto bit = static_cast<unsigned>(std::countr_zero(word));
      *--end = reinterpret_cast<void*>(word_base + bit * block_bytes);
      word &= word - 1;
      --count;
    } while (word != 0 && count != 0);
    words()[word_index] = word;
    if (word == 0) summary &= summary - 1;
  }
  summary_ = summary;
}

std::uint32_t Slab::Take(Address base, void** blocks, std::uint32_t count) {
  const std::uint32_t used = std::min(count, free_count_);
  const std::uint32_t fresh = std::min(count - used, capacity() - bump_);
  void** const end = blocks + used + fresh;
  TakeFromBitmap(base, end, used);
  const std::size_t block_bytes = ClassBytes(size_class_);
  Address block = base + bump_ * block_bytes;
  for (void** at = blocks + fresh; at != blocks; block += block_bytes) {
    *--at = reinterpret_cast<void*>(block);
  }
  bump_ += fresh;
  return used + fresh;
}

std::uint32_t Slab::Put(Address base, void* const* blocks, std::uint32_t count,
                        bool& sound) {
  const ClassLayout layout = kClassLayouts[size_class_];
  const Address slab_bytes = layout.slab_units * kUnitBytes;
  std::uint64_t* const bitmap = words();
  std::uint64_t summary = summary_;
  std::uint32_t done = 0;
  sound = true;
  do {
    const Address offset = reinterpret_cast<Address>(blocks[done]) - base;
    if (offset >= slab_bytes) break;
    const std::uint32_t index =
        BlockIndexAt(layout, static_cast<std::uint32_t>(offset));
    const std::uint64_t word = bitmap[index / 64];
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    if ((word & bit) != 0 || index >= bump_) [[unlikely]] {
      sound = false;
      break;
    }
    bitmap[index / 64] = word | bit;
    summary |= std::uint64_t{1} << (index / 64);
  } while (++done < count);
  summary_ = summary;
  free_count_ += done;
  return done;
}

bool Slab::IsFree(std::uint32_t index) const {
  return index >= bump_ || (words()[index / 64] >> (index % 64) & 1) != 0;
}

// The first block from `index` on, before bump, whose bit is `set`; else bump,
// or `index` if that is beyond.
std::uint32_t Slab::FindBit(std::uint32_t index, bool set) const {
  const std::uint64_t flip = set ? 0 : ~std::uint64_t{0};
  for (std::uint32_t at = index; at < bump_; at = RoundDown(at, 64U) + 64) {
    const std::uint64_t word = (words()[at / 64] ^ flip) >> (at % 64);
    if (word == 0) continue;
    return std::min(at + static_cast<std::uint32_t>(std::countr_zero(word)),
                    bump_);
  }
  return std::max(index, bump_);
}

Slab::Run Slab::NextFreeRun(std::uint32_t index) const {
  const std::uint32_t first = FindBit(index, /*set=*/true);
  const std::uint32_t end = FindBit(first, /*set=*/false);
  // All beyond bump can be taken.
  return {first, (end < bump_ ? end : std::max(first, capacity())) - first};
}

void Slab::CheckInvariants() const {
  HAK_CHECK_LE(bump_, capacity());   // S3
  HAK_CHECK_LE(free_count_, bump_);  // S3
  std::uint32_t set = 0;
  for (std::uint32_t i = 0; i < WordCount(); ++i) {
    const std::uint64_t word = words()[i];
    set += static_cast<std::uint32_t>(std::popcount(word));
    HAK_CHECK_EQ((summary_ >> i & 1) != 0, word != 0);  // S2
    if (word != 0) {
      HAK_CHECK_LT(
          i * 64 + static_cast<std::uint32_t>(std::bit_width(word)) - 1,
          bump_);  // S1
    }
  }
  HAK_CHECK_EQ(set, free_count_);  // S1
}

}  // namespace hakmem
