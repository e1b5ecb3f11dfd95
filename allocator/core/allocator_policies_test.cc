// What the hardened variants' policies of memory look like from above.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_event.h"
#include "allocator/heap/resting_blocks.h"
#include "allocator/lookup/lookup.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_header.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

template <typename TypeParam>
class PoliciesTest : public testing::Test {
 protected:
  ~PoliciesTest() override { allocator_.CheckInvariants(); }

  void* Allocate(std::size_t size) {
    return allocator_.Allocate(test_.self, size);
  }
  void Free(void* block) { allocator_.Free(test_.self, block); }
  std::size_t Usable(const void* block) {
    return allocator_.UsableSize(test_.self, block);
  }
  bool IsInaccessible(const void* block) {
    const std::size_t page = test_.memory.PageBytes();
    return test_.memory.IsProtected(
        reinterpret_cast<Address>(block) / page * page, page);
  }

  TestAllocator<TypeParam::kConfig> test_;
  TestedAllocator<TypeParam::kConfig>& allocator_ = *test_.allocator;
};

using Variants = testing::Types<Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(PoliciesTest, Variants);

TYPED_TEST(PoliciesTest, BlocksOfSizeZeroAreInaccessible) {
  auto& allocator = this->allocator_;
  auto& self = this->test_.self;
  std::set<void*> blocks;
  for (int round = 0; round < 10; ++round) {
    for (void* block :
         {this->Allocate(0), allocator.AllocateZeroed(self, 0, 100),
          allocator.AllocateAligned(self, 4096, 0)}) {
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(blocks.insert(block).second);
      EXPECT_TRUE(this->IsInaccessible(block));
      EXPECT_EQ(this->Usable(block), 0U);
    }
  }
  for (void* block : blocks) this->Free(block);
}

// A block rests while half a ring of others are freed, or longer by chance.
TYPED_TEST(PoliciesTest, FreedBlocksRestForHalfARing) {
  constexpr std::size_t kRing = kMaxResting;
  std::vector<void*> blocks(16 * kRing);
  for (void*& block : blocks) block = this->Allocate(56);
  void** const slots = this->test_.self->TinyCache(64).rest_slots;
  std::set<std::size_t> rests;
  std::vector<std::size_t> resting;
  for (std::size_t freed = 0; freed < blocks.size(); ++freed) {
    this->Free(blocks[freed]);
    resting.push_back(freed);
    std::erase_if(resting, [&](std::size_t i) {
      const HeaderByte header =
          HeaderAt(this->allocator_.ace(), blocks[i]).load();
      EXPECT_EQ(HeaderState(header), BlockState::kFree);
      if (std::find(slots, slots + kRing, blocks[i]) != slots + kRing) {
        return false;
      }
      rests.insert(freed - i);
      return true;
    });
    EXPECT_LE(resting.size(), kRing);
  }
  EXPECT_GT(*rests.begin(), kRing / 2);
  EXPECT_GT(rests.size(), 3U);
}

// Nothing writes the header of a block that rests.
TYPED_TEST(PoliciesTest, DamageToTheHeaderOfARestingBlockIsFound) {
  void* const block = this->Allocate(56);
  std::atomic<HeaderByte>& header = HeaderAt(this->allocator_.ace(), block);
  this->Free(block);
  const HeaderByte free = header.exchange(MakeHeader(BlockState::kFree, 1));
  EXPECT_DEATH(
      for (std::size_t i = 0; i < 16 * kMaxResting;
           ++i) { this->Free(this->Allocate(56)); },
      "damaged header of ");
  header.store(free);
}

TYPED_TEST(PoliciesTest, BlocksOfSizeZeroCanGrow) {
  auto* block = static_cast<char*>(this->Allocate(0));
  for (const std::size_t size : {1U, 5000U, 300'000U}) {
    block = static_cast<char*>(
        this->allocator_.Reallocate(this->test_.self, block, size));
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, size);
    EXPECT_GE(this->Usable(block), size);
  }
  this->Free(block);
  void* empty = this->Allocate(0);
  this->allocator_.FreeSized(this->test_.self, empty, 0, 16);
}

TYPED_TEST(PoliciesTest, RefusedAddressesOfSizeZeroAreAFailedCall) {
  this->Free(this->Allocate(1));
  std::vector<void*> blocks;
  this->test_.memory.RefuseCall(1, ENOMEM, Refuse::kFromThenOn, VmCall::kMap);
  while (void* block = this->Allocate(0)) blocks.push_back(block);
  EXPECT_EQ(this->test_.failures(), 1U);
  EXPECT_EQ(this->test_.LastFailure().reason, FailureReason::kMapFail);
  this->test_.memory.RefuseNothing();
  for (void* block : blocks) this->Free(block);
  void* again = this->Allocate(0);
  EXPECT_NE(again, nullptr);
  this->Free(again);
}

// A guard lies behind each span, and costs no call when the span comes again.
TYPED_TEST(PoliciesTest, SpansEndAtAGuard) {
  auto& memory = this->test_.memory;
  for (const std::size_t size : {std::size_t{70'000}, std::size_t{128 * kKiB},
                                 std::size_t{kMiB}, std::size_t{10 * kMiB}}) {
    std::uint64_t calls = 0;
    void* first = nullptr;
    for (int round = 0; round < 10; ++round) {
      auto* block = static_cast<char*>(this->Allocate(size));
      std::memset(block, 1, size);
      // No further than the length to which spans are rounded.
      std::size_t end = RoundUp(size, memory.PageBytes());
      while (!this->IsInaccessible(block + end)) end += memory.PageBytes();
      EXPECT_LE(end, size + size / 4 + kUnitBytes);
      if (round == 1) calls = memory.calls(VmCall::kProtect);
      if (round == 0) first = block;
      EXPECT_EQ(block, first);
      this->Free(block);
    }
    EXPECT_EQ(memory.calls(VmCall::kProtect), calls);
  }
}

TYPED_TEST(PoliciesTest, AFreeOfAFreshSpanLooksAtWhatWasTouched) {
  constexpr std::size_t kBytes = 100'000;
  auto* block = static_cast<char*>(this->Allocate(kBytes));
  block[0] = 7;
  this->Free(block);
  std::vector<unsigned char> resident(kBytes / this->test_.memory.PageBytes());
  ASSERT_TRUE(
      this->test_.memory
          .FindResident(reinterpret_cast<Address>(block),
                        resident.size() * this->test_.memory.PageBytes(),
                        resident.data())
          .ok());
  EXPECT_LE(std::count(resident.begin(), resident.end(), 1), 2);
}

TYPED_TEST(PoliciesTest, SpansShrinkInPlaceAndGiveTheirTailBack) {
  constexpr std::size_t kBytes = 8 * kMiB;
  auto& self = this->test_.self;
  auto* block = static_cast<char*>(this->Allocate(kBytes));
  std::memset(block, 1, kBytes);
  EXPECT_EQ(this->allocator_.Reallocate(self, block, 3 * kMiB), block);
  EXPECT_TRUE(this->test_.memory.IsPurged(
      reinterpret_cast<Address>(block) + 3 * kMiB, 5 * kMiB));
  EXPECT_EQ(block[3 * kMiB - 1], 1);
  // Of less than a quarter, a span of its own is made.
  auto* moved =
      static_cast<char*>(this->allocator_.Reallocate(self, block, 200'000));
  EXPECT_NE(moved, block);
  EXPECT_EQ(moved[199'999], 1);
  auto* grown =
      static_cast<char*>(this->allocator_.Reallocate(self, moved, kBytes));
  EXPECT_EQ(grown[199'999], 1);
  EXPECT_EQ(grown[200'000], 0);
  this->Free(grown);
}

// Terabytes of which little was touched are not looked at.
TYPED_TEST(PoliciesTest, TheEndOfAHugeBlockGoesBackUnread) {
  constexpr std::size_t kOldBytes = 2 * kMaxSpanBytes;
  constexpr std::size_t kNewBytes = kMaxSpanBytes + kMiB + 100;
  auto* block = static_cast<char*>(this->Allocate(kOldBytes));
  ASSERT_NE(block, nullptr);
  constexpr std::size_t kTouched[] = {kNewBytes, kNewBytes + kMiB,
                                      kOldBytes - 1};
  for (const std::size_t at : kTouched) block[at] = 'x';
  this->test_.memory.RefuseCall(1, ENOMEM, Refuse::kFromThenOn, VmCall::kUnmap);
  ASSERT_EQ(this->allocator_.Reallocate(this->test_.self, block, kNewBytes),
            block);
  this->test_.memory.RefuseNothing();
  const auto tail = RoundUp(reinterpret_cast<Address>(block) + kNewBytes,
                            this->test_.memory.PageBytes());
  EXPECT_TRUE(this->test_.memory.IsPurged(
      tail, reinterpret_cast<Address>(block) + kOldBytes - tail));
  // The first lies in the canary now.
  for (const std::size_t at : {kTouched[1], kTouched[2]}) {
    EXPECT_EQ(block[at], 0) << at;
  }
  EXPECT_EQ(this->Usable(block), kNewBytes);
  this->Free(block);
}

// A span that gets some bytes longer than its pages are is moved to a longer
// one, and the canary lies where its last page came to lie.
TYPED_TEST(PoliciesTest, ASpanThatGrowsByLessThanItsCanaryKeepsIt) {
  auto& allocator = *this->test_.allocator;
  auto*& self = this->test_.self;
  void* block = allocator.Allocate(self, 5 * kMiB);
  ASSERT_NE(block, nullptr);
  const Zone& zone = allocator.ace().region().coarse();
  const std::size_t most_bytes = SpanAccessibleBytes(
      DescriptorOf(zone, zone.UnitOf(reinterpret_cast<Address>(block))));
  for (std::size_t less = 8; less >= 1; --less) {
    void* full = allocator.Allocate(self, most_bytes - 8);
    ASSERT_NE(full, nullptr);
    void* longer = allocator.Reallocate(self, full, most_bytes - less);
    ASSERT_NE(longer, nullptr);
    // Ends the test if the canary is damaged.
    allocator.Free(self, longer);
  }
  allocator.Free(self, block);
}

}  // namespace
}  // namespace hakmem
