// HugePool against a model, with random use and refusals.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>

#include "allocator/ace/huge_pool.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class HugePoolModelTest : public testing::TestWithParam<unsigned> {
 protected:
  struct Block {
    std::size_t bytes;
    std::uint64_t seed;
  };
  using Blocks = std::map<Address, Block>;

  HugePoolModelTest() : random_(GetParam()) {
    // Small windows: 128 frames of huge blocks.
    const Address begin = memory_.RegionRange().begin;
    memory_.SetRegionRange({begin, begin + 1 * kGiB + kRegionFixedBytes});
    region_.Place(memory_);
    pool_.Place(region_, memory_.PageBytes());
  }

  std::size_t RandomBytes() {
    return (1 + random_() % 1500) * memory_.PageBytes();
  }
  Blocks::iterator Pick() {
    const auto at = live_.lower_bound(region_.huge().begin +
                                      random_() % region_.huge().bytes);
    return at == live_.end() ? live_.begin() : at;
  }
  // The end of a block and of the frame that stays free after it.
  static Address EndOf(Blocks::iterator block) {
    return RoundUp<Address>(block->first + block->second.bytes,
                            kSuperSlabBytes) +
           kSuperSlabBytes;
  }
  void Add(Address address, std::size_t bytes) {
    const auto [at, is_new] = live_.emplace(address, Block{bytes, random_()});
    ASSERT_TRUE(is_new);
    if (at != live_.begin()) EXPECT_LE(EndOf(std::prev(at)), address);
    if (std::next(at) != live_.end())
      EXPECT_LE(EndOf(at), std::next(at)->first);
    FillContent(address, bytes, at->second.seed);
  }

  void Grant() {
    const std::size_t bytes = RandomBytes();
    const std::size_t alignment = kSuperSlabBytes << (random_() % 3);
    const Address address = pool_.Grant(bytes, alignment).address;
    if (address == 0) return;
    EXPECT_EQ(address % alignment, 0U);
    EXPECT_PRED2(IsBlank, address, bytes);
    Add(address, bytes);
  }
  void Release() {
    if (live_.empty()) return;
    const auto block = Pick();
    const auto [bytes, seed] = block->second;
    EXPECT_PRED3(HasContent, block->first, bytes, seed);
    EXPECT_EQ(pool_.Release(block->first), bytes);
    live_.erase(block);
  }
  void Resize() {
    if (live_.empty()) return;
    const auto block = Pick();
    const auto [address, old] = *block;
    const std::size_t bytes = RandomBytes();
    const Address moved = pool_.Resize(address, bytes).address;
    const Address now = moved == 0 ? address : moved;
    const std::size_t kept =
        moved == 0 ? old.bytes : std::min(bytes, old.bytes);
    EXPECT_PRED3(HasContent, now, kept, old.seed);
    if (moved == 0) return;
    live_.erase(block);
    Add(moved, pool_.BytesOf(moved));
  }

  FakeVirtualMemory memory_;
  Region region_;
  FutexLock lock_;
  TouchedPages pages_{memory_};
  HugePool pool_{lock_, pages_, memory_};
  std::mt19937_64 random_;
  Blocks live_;
};

TEST_P(HugePoolModelTest, AgreesAfterEachStep) {
  for (int step = 0; step < 600 && !HasFatalFailure(); ++step) {
    memory_.RefuseNothing();
    if (random_() % 8 == 0) memory_.RefuseCall(1 + random_() % 4, ENOMEM);
    switch (random_() % 3) {
      case 0:
        Grant();
        break;
      case 1:
        Release();
        break;
      default:
        Resize();
        break;
    }
    pool_.CheckInvariants();
  }
  std::size_t bytes = 0;
  for (const auto& [address, block] : live_) {
    EXPECT_TRUE(pool_.IsLive(address));
    bytes += block.bytes;
  }
  EXPECT_EQ(pool_.mapped_bytes(), bytes);
  EXPECT_GT(memory_.calls(VmCall::kMove), 10U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HugePoolModelTest, testing::Values(1U, 2U));

}  // namespace
}  // namespace hakmem
