#include "allocator/lookup/block_walk.h"

#include <atomic>
#include <cstddef>
#include <map>
#include <random>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSizes[] = {1,      40,      900,      5000,
                                  60'000, 200'000, 3 * kMiB, 300 * kMiB};

template <typename V>
class BlockWalkTest : public testing::Test {
 protected:
  using Blocks = std::map<const void*, std::size_t>;

  Blocks Live() {
    Blocks found;
    VisitLiveBlocks(
        allocator_.ace(),
        [](void* context, const void* start, const LiveBlock& block) {
          const bool is_new = static_cast<Blocks*>(context)
                                  ->emplace(start, block.usable_bytes)
                                  .second;
          EXPECT_TRUE(is_new);
        },
        &found);
    return found;
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kDebug>>;
TYPED_TEST_SUITE(BlockWalkTest, Variants);

TYPED_TEST(BlockWalkTest, VisitsWhatIsLiveAndNothingElse) {
  std::mt19937 random(1);
  std::vector<char*> blocks;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t size = kSizes[random() % 7];
    blocks.push_back(
        static_cast<char*>(this->allocator_.Allocate(this->test_.self, size)));
    ASSERT_NE(blocks.back(), nullptr);
    if (random() % 2 == 0) {
      const std::size_t at = random() % blocks.size();
      this->allocator_.Free(this->test_.self, blocks[at]);
      blocks[at] = blocks.back();
      blocks.pop_back();
    }
  }
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(static_cast<char*>(
        this->allocator_.Allocate(this->test_.self, 300 * kMiB)));
    ASSERT_NE(blocks.back(), nullptr);
  }
  const auto found = this->Live();
  EXPECT_EQ(found.size(), blocks.size());
  for (const char* block : blocks) EXPECT_EQ(found.count(block), 1U);
}

// A class that there is not, and one of the other zone's.
TYPED_TEST(BlockWalkTest, PassesOverDamagedRecords) {
  void* tiny = this->allocator_.Allocate(this->test_.self, 40);
  void* pool = this->allocator_.Allocate(this->test_.self, 5000);
  Region& region = this->allocator_.ace().region();
  const auto unit_of = [](Zone& zone, void* block) -> std::atomic<UnitRecord>& {
    return zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(block)));
  };
  std::atomic<UnitRecord>& tiny_record = unit_of(region.fine(), tiny);
  std::atomic<UnitRecord>& pool_record = unit_of(region.coarse(), pool);
  const UnitRecord tiny_sound = tiny_record;
  const UnitRecord pool_sound = pool_record;
  for (const unsigned code : {0U, kClassCount + 1U}) {
    tiny_record = MakeUnitRecord(UnitOwner(tiny_sound),
                                 MakeHeader(BlockState::kLive, code));
    EXPECT_EQ(this->Live().count(tiny), 0U) << code;
    EXPECT_EQ(this->Live().count(pool), 1U) << code;
  }
  tiny_record = pool_sound;
  pool_record = tiny_sound;
  EXPECT_TRUE(this->Live().empty());
  tiny_record = tiny_sound;
  pool_record = pool_sound;
  EXPECT_EQ(this->Live().size(), 2U);
}

}  // namespace
}  // namespace hakmem
