#include "allocator/heap/magazine.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(MagazineTest, TopTellsFillCountAndStart) {
  alignas(kMagazineBytes) std::byte memory[kMagazineBytes];
  const auto start = reinterpret_cast<Address>(memory);
  for (std::uint32_t count = 0; count <= kMagazineSlots; ++count) {
    const MagazineTop top = start + count * kMagazineSlotBytes;
    EXPECT_EQ(MagazineFillBytes(top), count * kMagazineSlotBytes);
    EXPECT_EQ(MagazineCount(top), count);
    EXPECT_EQ(MagazineStart(top), start);
    EXPECT_EQ(reinterpret_cast<Address>(MagazineBlocks(top)), start + 8);
    EXPECT_EQ(reinterpret_cast<Address>(&MagazineLink(top)), start);
  }
}

TEST(MagazineTest, BlockBelowIsCountedFromTheTopAndStaysInside) {
  alignas(kMagazineBytes) void* words[kMagazineSlots + 1];
  for (void*& word : words) word = &word;
  const auto start = reinterpret_cast<Address>(words);
  EXPECT_EQ(BlockBelow(start + 9 * kMagazineSlotBytes, 0), &words[9]);
  EXPECT_EQ(BlockBelow(start + 9 * kMagazineSlotBytes, 4), &words[5]);
  EXPECT_EQ(BlockBelow(start + kMagazineSlotBytes, 4),
            &words[kMagazineSlots + 1 - 3]);
}

// Null needs no test of its own: it is an empty magazine.
TEST(MagazineTest, NoMagazineIsEmpty) {
  EXPECT_EQ(MagazineFillBytes(0), 0U);
  EXPECT_EQ(MagazineCount(0), 0U);
}

TEST(MagazineTest, CapacityFitsTheBudget) {
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    const std::uint32_t capacity = MagazineCapacity(size_class);
    EXPECT_GE(capacity, 2U);
    EXPECT_LE(capacity, kMagazineSlots);
    EXPECT_LE(capacity * ClassBytes(size_class), kMagazineBudgetBytes);
    EXPECT_GE(MaxRefill(size_class), 1U);
    EXPECT_LE(MaxRefill(size_class), capacity);
  }
}

}  // namespace
}  // namespace hakmem
