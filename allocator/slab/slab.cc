#include "allocator/slab/slab.h"

#include <algorithm>
#include <bit>

#include "allocator/base/check.h"

namespace hakmem {

void Slab::Start(SizeClass size_class, UnitIndex first_unit) {
  size_class_ = size_class;
  first_unit_ = first_unit;
  next = kNoUnit;
  previous = kNoUnit;
  bucket = 0;
  bump_ = 0;
  free_count_ = 0;
  summary_ = 0;
  std::fill_n(words(), WordCount(), std::uint64_t{0});
}

std::uint32_t Slab::TakeFromBitmap(std::uint32_t* indices,
                                   std::uint32_t count) {
  std::uint32_t taken = 0;
  while (taken < count && summary_ != 0) {
    const auto word_index = static_cast<unsigned>(std::countr_zero(summary_));
    std::uint64_t word = words()[word_index];
    while (word != 0 && taken < count) {
      indices[taken++] =
          word_index * 64 + static_cast<unsigned>(std::countr_zero(word));
      word &= word - 1;
    }
    words()[word_index] = word;
    if (word == 0) summary_ &= summary_ - 1;
  }
  free_count_ -= taken;
  return taken;
}

std::uint32_t Slab::Take(std::uint32_t* indices, std::uint32_t count) {
  std::uint32_t taken = TakeFromBitmap(indices, count);
  const std::uint32_t fresh = std::min(count - taken, capacity() - bump_);
  for (std::uint32_t i = 0; i < fresh; ++i) indices[taken++] = bump_++;
  return taken;
}

bool Slab::IsFree(std::uint32_t index) const {
  return index >= bump_ || (words()[index / 64] >> (index % 64) & 1) != 0;
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
