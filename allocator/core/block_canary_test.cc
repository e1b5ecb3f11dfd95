#include "allocator/core/block_canary.h"

#include <cstddef>
#include <cstring>

#include "allocator/base/units.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr CanarySecret kSecret = {.mask = 0x123456789abcdef1,
                                  .factor = 0x9e3779b97f4a7c15};
constexpr std::size_t kBlockBytes = 112;

struct alignas(16) Block {
  unsigned char bytes[kBlockBytes] = {};
  BlockCanary CanaryFor(std::size_t size_bytes) const {
    return {reinterpret_cast<Address>(bytes), size_bytes, kSecret};
  }
};

constexpr std::size_t kMaxSize = kBlockBytes - BlockCanary::kBytes;

// Every byte behind every size, up to what the canary has.
TEST(BlockCanaryTest, NoticesEachByteBehindTheSize) {
  for (std::size_t size = 0; size <= kMaxSize; ++size) {
    Block block;
    const BlockCanary canary = block.CanaryFor(size);
    canary.Place();
    EXPECT_TRUE(canary.IsIntact());
    EXPECT_EQ(canary.FirstDamage(), 0U);
    for (std::size_t at = 0; at < kBlockBytes; ++at) {
      block.bytes[at] ^= 0x5a;
      const bool behind = at >= size && at < size + BlockCanary::kBytes;
      EXPECT_EQ(canary.IsIntact(), !behind) << size << " " << at;
      EXPECT_EQ(canary.FirstDamage(),
                behind ? reinterpret_cast<Address>(block.bytes + at) : 0)
          << size << " " << at;
      block.bytes[at] ^= 0x5a;
    }
  }
}

TEST(BlockCanaryTest, LeavesWhatTheProgramHas) {
  for (std::size_t size = 0; size <= kMaxSize; ++size) {
    Block block;
    std::memset(block.bytes, 0x77, size);
    const BlockCanary canary = block.CanaryFor(size);
    canary.Place();
    EXPECT_TRUE(canary.IsIntact());
    for (std::size_t at = 0; at < size; ++at) {
      ASSERT_EQ(block.bytes[at], 0x77) << size << " " << at;
    }
    canary.Remove();
    for (std::size_t at = 0; at < kBlockBytes; ++at) {
      ASSERT_EQ(block.bytes[at], at < size ? 0x77 : 0) << size << " " << at;
    }
  }
}

// As the end of a string does that is one byte too long.
TEST(BlockCanaryTest, NoticesAZeroTooMany) {
  for (std::size_t size = 0; size <= kMaxSize; ++size) {
    Block block;
    const BlockCanary canary = block.CanaryFor(size);
    canary.Place();
    block.bytes[size] = 0;
    EXPECT_FALSE(canary.IsIntact()) << size;
  }
}

TEST(BlockCanaryTest, FollowsFromAddressAndSecret) {
  Block blocks[2];
  blocks[0].CanaryFor(40).Place();
  std::memcpy(blocks[1].bytes, blocks[0].bytes, kBlockBytes);
  EXPECT_FALSE(blocks[1].CanaryFor(40).IsIntact());
  for (const CanarySecret& secret :
       {CanarySecret{kSecret.mask + 2, kSecret.factor},
        CanarySecret{kSecret.mask, kSecret.factor + 2}}) {
    const BlockCanary other(reinterpret_cast<Address>(blocks[0].bytes), 40,
                            secret);
    EXPECT_FALSE(other.IsIntact());
  }
}

}  // namespace
}  // namespace hakmem
