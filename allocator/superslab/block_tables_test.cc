#include "allocator/superslab/block_tables.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// BK1.
TEST(BlockTablesTest, FieldsKeepTheirPlaces) {
  EXPECT_EQ(offsetof(BlockTables, version), 8U);
  EXPECT_EQ(offsetof(BlockTables, record_distance_bytes), 24U);
  EXPECT_EQ(offsetof(BlockTables, class_layouts), 40U);
  EXPECT_EQ(offsetof(BlockTables, zones), 48U);
  EXPECT_EQ(sizeof(ZoneTables), 32U);
  EXPECT_EQ(offsetof(ZoneTables, descriptors), 24U);
  EXPECT_EQ(offsetof(BlockTables, huge), 112U);
  EXPECT_EQ(offsetof(HugeTables, next_offset), 32U);
  EXPECT_EQ(offsetof(BlockTables, guarded_blocks), 152U);
  EXPECT_EQ(offsetof(BlockTables, descriptor), 168U);
  EXPECT_EQ(offsetof(BlockTables, hakmem_version), 200U);
  EXPECT_EQ(offsetof(BlockTables, variant), 208U);
  EXPECT_EQ(offsetof(BlockTables, slab_capacity), 216U);
  EXPECT_EQ(offsetof(BlockTables, slab_bump), 224U);
  EXPECT_EQ(offsetof(BlockTables, slab_free_count), 232U);
  EXPECT_EQ(sizeof(BlockTables), 240U);
}

}  // namespace
}  // namespace hakmem
