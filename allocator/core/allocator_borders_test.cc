// Blocks that realloc takes over a border of classes or routes, back and forth.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kPageBytes = 4096;

template <typename V>
class AllocatorBordersTest : public testing::Test {
 protected:
  static constexpr bool kExact = V::kConfig.check_bounds;

  // Over the border once; then it must not move again, whichever way it goes.
  void Cross(std::size_t less_bytes, std::size_t more_bytes) {
    const testing::Message where = testing::Message()
                                   << less_bytes << " <-> " << more_bytes;
    char* block = static_cast<char*>(allocator_.Allocate(self_, less_bytes));
    ASSERT_NE(block, nullptr);
    std::memset(block, 7, less_bytes);
    block = static_cast<char*>(allocator_.Reallocate(self_, block, more_bytes));
    ASSERT_NE(block, nullptr);
    const std::uint64_t calls = Calls();
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(allocator_.Reallocate(self_, block, less_bytes), block)
          << where;
      CheckUsable(block, less_bytes);
      ASSERT_EQ(allocator_.Reallocate(self_, block, more_bytes), block)
          << where;
      CheckUsable(block, more_bytes);
    }
    EXPECT_EQ(block[0], 7);
    EXPECT_EQ(block[less_bytes - 1], 7);
    // Hardened variants drop the tail of long blocks.
    if (!kExact) EXPECT_EQ(Calls(), calls) << where;
    // Its size is the one that was asked for last, either way.
    EXPECT_DEATH(allocator_.FreeSized(self_, block, less_bytes, 16),
                 "hakmem: fatal: ");
    ASSERT_EQ(allocator_.Reallocate(self_, block, less_bytes), block);
    EXPECT_DEATH(allocator_.FreeSized(self_, block, more_bytes, 16),
                 "hakmem: fatal: ");
    allocator_.FreeSized(self_, block, less_bytes, 16);
    EXPECT_DEATH(allocator_.Free(self_, block), "hakmem: fatal: ");
    allocator_.CheckInvariants();
  }

  std::uint64_t Calls() const {
    std::uint64_t calls = 0;
    for (const VmCall kind :
         {VmCall::kMap, VmCall::kUnmap, VmCall::kPurge, VmCall::kMove}) {
      calls += test_.memory.calls(kind);
    }
    return calls;
  }

  void CheckUsable(void* block, std::size_t size_bytes) {
    const std::size_t usable = allocator_.UsableSize(self_, block);
    if (kExact) {
      EXPECT_EQ(usable, size_bytes);
    } else {
      EXPECT_GE(usable, size_bytes);
    }
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
  static constexpr std::size_t kSlackBytes =
      TestedAllocator<V::kConfig>::kSlackBytes;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorBordersTest, Variants);

TYPED_TEST(AllocatorBordersTest, OfPoolClasses) {
  for (unsigned code = kTinyClassCount; code < kClassCount; ++code) {
    const std::size_t border =
        ClassBytes(static_cast<SizeClass>(code - 1)) - this->kSlackBytes;
    this->Cross(border, border + 1);
  }
  this->Cross(48'000, 50'000);
}

TYPED_TEST(AllocatorBordersTest, OfSpans) {
  const std::size_t border = kMaxPoolBytes - this->kSlackBytes;
  this->Cross(border, border + 1);
  this->Cross(60 * kKiB, 70 * kKiB);
  for (const std::size_t units : {2, 3, 4, 5, 16, 31, 100}) {
    const std::size_t bytes = units * kUnitBytes - this->kSlackBytes;
    this->Cross(bytes, bytes + 1);
  }
}

TYPED_TEST(AllocatorBordersTest, OfHugeBlocks) {
  this->Cross(kMaxSpanBytes + kPageBytes, kMaxSpanBytes + kPageBytes + 1);
}

// Pages that were touched are moved or stay; no byte is copied, so the others
// get no memory.
TYPED_TEST(AllocatorBordersTest, OfSpansAndHugeBlocks) {
  auto& allocator = this->allocator_;
  auto& memory = this->test_.memory;
  constexpr std::size_t kShortBytes = 200 * kMiB;
  constexpr std::size_t kLongBytes = 300 * kMiB;
  char* block =
      static_cast<char*>(allocator.Allocate(this->self_, kShortBytes));
  block[0] = 5;
  block[kShortBytes - 1] = 7;
  const std::uint64_t moves = memory.calls(VmCall::kMove);
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t bytes : {kLongBytes, kShortBytes}) {
      block =
          static_cast<char*>(allocator.Reallocate(this->self_, block, bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(block[0], 5);
      EXPECT_EQ(block[kShortBytes - 1], 7);
      EXPECT_DEATH(
          allocator.FreeSized(this->self_, block, bytes - 2 * kPageBytes, 16),
          "hakmem: fatal: ");
    }
  }
  EXPECT_EQ(memory.calls(VmCall::kMove), moves + 1);
  std::vector<unsigned char> resident(kShortBytes / kPageBytes);
  ASSERT_TRUE(memory
                  .FindResident(reinterpret_cast<Address>(block), kShortBytes,
                                resident.data())
                  .ok());
  EXPECT_LE(std::accumulate(resident.begin(), resident.end(), 0), 8);
  allocator.FreeSized(this->self_, block, kShortBytes, 16);
  allocator.CheckInvariants();
}

// Each outcome of a move that the kernel does not do as asked.
TYPED_TEST(AllocatorBordersTest, PagesThatCannotMoveToAHugeBlock) {
  for (int outcome = 0; outcome < 3; ++outcome) {
    TestAllocator<TypeParam::kConfig> test;
    auto& allocator = *test.allocator;
    char* block = static_cast<char*>(allocator.Allocate(test.self, 5 * kMiB));
    std::memset(block, 7, 5 * kMiB);
    if (outcome == 0) test.memory.LoseTargetOfRefusedMoves();
    if (outcome == 2) test.memory.LoseSourceOfMoves();
    if (outcome != 2) {
      test.memory.RefuseCall(1, EFAULT, FakeVirtualMemory::Refuse::kOnce,
                             VmCall::kMove);
    }
    block = static_cast<char*>(
        allocator.Reallocate(test.self, block, kMaxSpanBytes + 1));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(std::count(block, block + 5 * kMiB, 7), 5 * kMiB);
    allocator.CheckInvariants();
    allocator.FreeSized(test.self, block, kMaxSpanBytes + 1, 16);
    allocator.CheckInvariants();
  }
}

// A range is longer than the span, and the span's pages may be more than the
// Huge block has.
TYPED_TEST(AllocatorBordersTest, NothingIsMovedBehindAHugeBlock) {
  constexpr std::size_t kLongestBytes =
      kMaxSpanBytes - AllocatorBordersTest<TypeParam>::kSlackBytes;
  for (const bool lost : {false, true}) {
    TestAllocator<TypeParam::kConfig> test;
    auto& allocator = *test.allocator;
    char* block =
        static_cast<char*>(allocator.Allocate(test.self, kLongestBytes - 1));
    ASSERT_NE(block, nullptr);
    block[0] = 5;
    block[kLongestBytes - 2] = 7;
    if (lost) {
      test.memory.LoseTargetOfRefusedMoves();
      test.memory.RefuseCall(1, EFAULT, FakeVirtualMemory::Refuse::kOnce,
                             VmCall::kMove);
    }
    block = static_cast<char*>(
        allocator.Reallocate(test.self, block, kLongestBytes + 1));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block[0], 5);
    EXPECT_EQ(block[kLongestBytes - 2], 7);
    EXPECT_EQ(test.memory.lost(), lost ? 1U : 0U);
    const Address end = RoundUp(
        reinterpret_cast<Address>(block) + kMaxSpanBytes + 1, kPageBytes);
    EXPECT_TRUE(test.memory.IsMapped(end - kPageBytes, kPageBytes));
    for (Address page = end; page < end + kUnitBytes; page += kPageBytes) {
      EXPECT_FALSE(test.memory.IsMapped(page, kPageBytes));
    }
    allocator.CheckInvariants();
    allocator.Free(test.self, block);
    allocator.CheckInvariants();
  }
}

// Its pages would be touched, and the new block's, by copying them.
TYPED_TEST(AllocatorBordersTest, AHugeBlockOfWhichLittleIsWantedStays) {
  auto& allocator = this->allocator_;
  auto& self = this->self_;
  for (const std::size_t wanted : {3 * kMiB, std::size_t{128 * kKiB}}) {
    auto* block =
        static_cast<char*>(allocator.Allocate(self, kMaxSpanBytes + 1));
    block[5] = 7;
    EXPECT_EQ(allocator.Reallocate(self, block, wanted), block);
    EXPECT_EQ(block[5], 7);
    EXPECT_LE(allocator.UsableSize(self, block), wanted + kPageBytes);
    auto* moved =
        static_cast<char*>(allocator.Reallocate(self, block, 128 * kKiB - 1));
    EXPECT_TRUE(moved != block || wanted == 128 * kKiB);
    EXPECT_EQ(moved[5], 7);
    allocator.CheckInvariants();
    allocator.FreeSized(self, moved, 128 * kKiB - 1, 16);
  }
}

// What stays has its bound: half of the block, and 2 MiB.
TYPED_TEST(AllocatorBordersTest, AShrinkThatPaysGivesBack) {
  auto& allocator = this->allocator_;
  auto& self = this->self_;
  void* pool = allocator.Allocate(self, 40'000);
  void* small = allocator.Reallocate(self, pool, 20'000);
  EXPECT_NE(small, pool);
  allocator.Free(self, small);
  const auto granted = [&] {
    return allocator.upkeep().Snapshot().granted_bytes;
  };
  void* span = allocator.Allocate(self, 100 * kUnitBytes - kPageBytes);
  const std::size_t before = granted();
  if (!this->kExact) {
    EXPECT_EQ(allocator.Reallocate(self, span, 60 * kUnitBytes), span);
    EXPECT_EQ(granted(), before - 40 * kUnitBytes);
    EXPECT_EQ(allocator.Reallocate(self, span, kUnitBytes), span);
    EXPECT_EQ(granted(), before - 99 * kUnitBytes);
    allocator.FreeSized(self, span, kUnitBytes, 16);
  } else {
    allocator.Free(self, span);
  }
}

// A shrunk block is live to everybody: freed by another thread, and twice.
TYPED_TEST(AllocatorBordersTest, ShrunkBlocksOfOtherThreads) {
  auto& allocator = this->allocator_;
  auto& self = this->self_;
  for (const std::size_t more : {std::size_t{50'000}, std::size_t{70'000}}) {
    void* block = allocator.Allocate(self, more);
    ASSERT_EQ(allocator.Reallocate(self, block, 40'000), block);
    char* inside = static_cast<char*>(block) + 16;
    EXPECT_DEATH(allocator.Free(self, inside), "interior|inside");
    std::thread([&] {
      auto* other = this->test_.NewThread();
      allocator.Free(other, allocator.Allocate(other, 10));
      allocator.Free(other, block);
      EXPECT_DEATH(allocator.Free(other, block), "freed block|double");
      allocator.Detach(other);
    }).join();
    EXPECT_DEATH(allocator.Free(self, block), "freed block|double");
    allocator.CheckInvariants();
  }
}

// HAKMEM_CHECK_SIZES=0: the block is freed as what it is.
TYPED_TEST(AllocatorBordersTest, AWrongSizeMayBeLetPass) {
  auto& allocator = this->allocator_;
  auto& self = this->self_;
  for (const std::size_t size : {28U, 1112U, 40'000U, 300'000U, 8'000'000U}) {
    const auto free_as = [&](void* block, std::size_t given_bytes) {
      allocator.FreeSized(self, block, given_bytes, 16);
    };
    for (const std::size_t given : {std::size_t{16}, 2 * size}) {
      void* const block = allocator.Allocate(self, size);
      EXPECT_DEATH(free_as(block, given), "wrong-size free of ");
      SetSizesChecked(false);
      free_as(block, given);
      EXPECT_DEATH(free_as(block, given), "hakmem: fatal: ") << "twice";
      SetSizesChecked(true);
    }
  }
  void* const none = allocator.AllocateAligned(self, 2 * kMaxPoolBytes, 0);
  SetSizesChecked(false);
  allocator.FreeSized(self, none, 10, 16);
  EXPECT_DEATH(allocator.Free(self, none), "hakmem: fatal: ");
  SetSizesChecked(true);
  allocator.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
