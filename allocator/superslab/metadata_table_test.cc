#include "allocator/superslab/metadata_table.h"

#include <cerrno>
#include <cstddef>

#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr std::size_t kCapacityBytes = 8 * kMiB;
constexpr std::size_t kColourBytes = 0x540;

class MetadataTableTest : public testing::Test {
 protected:
  MetadataTableTest() : base_(memory_.RegionRange().begin) {
    table_.Place(base_, kCapacityBytes, kColourBytes);
  }
  char* First() const { return reinterpret_cast<char*>(table_.start()); }

  FakeVirtualMemory memory_;
  MetadataTable table_;
  const Address base_;
};

TEST_F(MetadataTableTest, MapsNothingUntilAsked) {
  EXPECT_EQ(table_.mapped_bytes(), 0U);
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
  EXPECT_EQ(table_.start(), base_ + kColourBytes);
  EXPECT_FALSE(table_.Contains(table_.start()));
  table_.CheckInvariants();
}

TEST_F(MetadataTableTest, GrowsAsAskedAndReadsAsZero) {
  std::size_t before = 0;
  for (std::size_t bytes = 1; bytes <= kCapacityBytes - kColourBytes;
       bytes += 300 * kKiB) {
    ASSERT_TRUE(table_.EnsureMapped(memory_, bytes).ok());
    EXPECT_GE(table_.mapped_bytes(), bytes + kColourBytes);
    EXPECT_GE(table_.mapped_bytes(), before);
    EXPECT_EQ(table_.mapped_bytes(), memory_.mapped_bytes());
    EXPECT_TRUE(memory_.IsMapped(base_, table_.mapped_bytes()));
    EXPECT_EQ(First()[bytes - 1], 0);
    First()[bytes - 1] = 1;
    before = table_.mapped_bytes();
    table_.CheckInvariants();
  }
  // Content stays where it is.
  EXPECT_EQ(First()[0], 1);
}

TEST_F(MetadataTableTest, AsksTheKernelSeldom) {
  for (std::size_t bytes = 1; bytes <= 4 * kMiB; bytes += 1000) {
    ASSERT_TRUE(table_.EnsureMapped(memory_, bytes).ok());
  }
  EXPECT_EQ(table_.map_calls(), memory_.calls(VmCall::kMap));
  EXPECT_LE(table_.map_calls(), 32U);
  const std::uint64_t calls = table_.map_calls();
  ASSERT_TRUE(table_.EnsureMapped(memory_, 1).ok());
  EXPECT_EQ(table_.map_calls(), calls);
}

TEST_F(MetadataTableTest, ContainsWhatIsMapped) {
  ASSERT_TRUE(table_.EnsureMapped(memory_, 1).ok());
  EXPECT_FALSE(table_.Contains(base_ - 1));
  EXPECT_TRUE(table_.Contains(base_));
  EXPECT_TRUE(table_.Contains(base_ + table_.mapped_bytes() - 1));
  EXPECT_FALSE(table_.Contains(base_ + table_.mapped_bytes()));
}

TEST_F(MetadataTableTest, TakesNoMoreThanItMustWhenMemoryIsShort) {
  memory_.LimitBytes(memory_.PageBytes());
  ASSERT_TRUE(table_.EnsureMapped(memory_, 1).ok());
  EXPECT_EQ(table_.mapped_bytes(), memory_.PageBytes());
}

TEST_F(MetadataTableTest, StaysAsItWasWhenRefused) {
  ASSERT_TRUE(table_.EnsureMapped(memory_, 100).ok());
  First()[99] = 7;
  const std::size_t before = table_.mapped_bytes();
  memory_.RefuseCall(1, EPERM, Refuse::kFromThenOn);
  EXPECT_EQ(table_.EnsureMapped(memory_, 2 * before).error_number, EPERM);
  EXPECT_EQ(table_.mapped_bytes(), before);
  EXPECT_EQ(First()[99], 7);
  table_.CheckInvariants();
  memory_.RefuseNothing();
  EXPECT_TRUE(table_.EnsureMapped(memory_, 2 * before).ok());
  EXPECT_EQ(First()[99], 7);
}

TEST_F(MetadataTableTest, EndsWithItsWindow) {
  EXPECT_EQ(table_.EnsureMapped(memory_, kCapacityBytes - kColourBytes + 1)
                .error_number,
            ENOSPC);
  EXPECT_EQ(table_.mapped_bytes(), 0U);
  ASSERT_TRUE(table_.EnsureMapped(memory_, kCapacityBytes - kColourBytes).ok());
  EXPECT_EQ(table_.mapped_bytes(), kCapacityBytes);
  EXPECT_EQ(table_.EnsureMapped(memory_, kCapacityBytes).error_number, ENOSPC);
}

}  // namespace
}  // namespace hakmem
