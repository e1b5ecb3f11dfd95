#include "tools/hakmem/free_blocks.h"

#include <cstdint>
#include <cstring>
#include <span>

#include "allocator/superslab/block_tables.h"
#include "gtest/gtest.h"

namespace hakmem::tools {
namespace {

struct Descriptor {
  std::uint64_t other = ~std::uint64_t{0};
  std::uint32_t bump = 0;
  std::uint32_t free_count = 0;
  std::uint16_t capacity = 0;
  std::uint16_t padding[7] = {};
};

BlockTables TablesOf(const Descriptor& model) {
  BlockTables tables = {};
  for (ZoneTables& zone : tables.zones) {
    zone.descriptor_bytes = sizeof(model);
  }
  tables.descriptor = &model;
  tables.slab_capacity = &model.capacity;
  tables.slab_bump = &model.bump;
  tables.slab_free_count = &model.free_count;
  return tables;
}

void ExpectSplit(const Descriptor& descriptor, std::uint32_t live,
                 const FreeBlocks& expected) {
  constexpr std::uint32_t kMost = 64;
  const Descriptor model;
  SlabWords words;
  EXPECT_EQ(words.bytes(), 0U);
  ASSERT_TRUE(words.Find(TablesOf(model)));
  ASSERT_LE(words.bytes(), sizeof(descriptor));
  char bytes[sizeof(descriptor)];
  std::memcpy(bytes, &descriptor, sizeof(bytes));
  const FreeBlocks found =
      words.Split(std::span(bytes).first(words.bytes()), kMost, live);
  EXPECT_EQ(found.cached, expected.cached);
  EXPECT_EQ(found.holes, expected.holes);
  EXPECT_EQ(found.fresh, expected.fresh);
}

TEST(FreeBlocksTest, EachFreeBlockIsSomewhere) {
  ExpectSplit({.bump = 50, .free_count = 20, .capacity = 64}, 7,
              {.cached = 23, .holes = 20, .fresh = 14});
  ExpectSplit({.bump = 64, .free_count = 0, .capacity = 64}, 64, {});
  // With a guard.
  ExpectSplit({.bump = 50, .free_count = 20, .capacity = 63}, 7,
              {.cached = 23, .holes = 20, .fresh = 13});
}

TEST(FreeBlocksTest, WordsThatDoNotGoTogether) {
  ExpectSplit({.bump = 50, .free_count = 45, .capacity = 64}, 7,
              {.cached = 0, .holes = 45, .fresh = 14});
  ExpectSplit({.bump = 500, .free_count = 400, .capacity = 60}, 7,
              {.cached = 0, .holes = 60, .fresh = 0});
  // Not begun yet, and one of smaller blocks before.
  ExpectSplit({.capacity = 0}, 0, {.cached = 0, .holes = 0, .fresh = 64});
  ExpectSplit({.capacity = 4096}, 0, {.cached = 0, .holes = 0, .fresh = 64});
}

TEST(FreeBlocksTest, OnlyWordsOfTheDescriptor) {
  const Descriptor models[2];
  BlockTables tables = TablesOf(models[1]);
  SlabWords words;
  tables.slab_bump = &models[0].bump;
  EXPECT_FALSE(words.Find(tables));
  tables = TablesOf(models[0]);
  tables.slab_free_count = &models[1].bump;
  EXPECT_FALSE(words.Find(tables));
  tables = TablesOf(models[0]);
  tables.zones[1].descriptor_bytes = 16;
  EXPECT_FALSE(words.Find(tables));
}

}  // namespace
}  // namespace hakmem::tools
