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

TEST(MagazineTest, TheWordFetchedIsABlockOrTheMagazine) {
  constexpr std::size_t kWords = kMagazineBytes / kMagazineSlotBytes;
  alignas(kMagazineBytes) void* words[2 * kWords];
  for (void*& word : words) word = &word;
  void** const magazine = words + kWords;
  const auto start = reinterpret_cast<Address>(magazine);
  StartFetches(start);
  for (std::uint32_t count = 0; count <= kMagazineSlots; ++count) {
    EXPECT_EQ((magazine + count)[-static_cast<int>(kFetchDepth)],
              count < kFetchDepth ? magazine : &magazine[count - kFetchDepth]);
  }
  EXPECT_EQ(words[kMagazineSlots], &words[kMagazineSlots]);
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
