// HAKMEM_CLEAR: how much of a freed block is cleared, and looked at when it is
// used again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// So much is looked at without gaps in blocks of every route.
constexpr std::size_t kBound = 288;
constexpr char kOld = 0x5a;
// Tiny, Pool and Span, each beyond the bound.
constexpr std::size_t kLongSizes[] = {400,    1000,    5000,   60'000,
                                      70'000, 200'000, 500'000};

HeapOptions ClearUpTo(std::uint64_t bytes) {
  HeapOptions options;
  options.clear_bytes = bytes;
  return options;
}

template <typename V>
class AllocatorClearTest : public testing::Test {
 protected:
  using Heap = typename TestAllocator<V::kConfig>::Heap;
  ~AllocatorClearTest() override { allocator_.CheckInvariants(); }

  char* Allocate(std::size_t size) {
    return static_cast<char*>(allocator_.Allocate(self_, size));
  }
  char* AllocateOld(std::size_t size) {
    char* const block = Allocate(size);
    std::memset(block, kOld, size);
    return block;
  }
  void Free(void* block) { allocator_.Free(self_, block); }
  // What a freed block of `size` bytes holds, canary included.
  static void ExpectClearUpTo(const char* block, std::size_t bound,
                              std::size_t size) {
    SCOPED_TRACE(size);
    const std::size_t clear = std::min(bound, size);
    EXPECT_EQ(FirstNonZero(block, clear), clear);
    for (std::size_t at = clear; at < size; ++at) {
      ASSERT_EQ(block[at], kOld) << at;
    }
    EXPECT_EQ(FirstNonZero(block + size, kMinSlackBytes), kMinSlackBytes);
  }

  TestAllocator<V::kConfig> test_{ClearUpTo(kBound)};
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorClearTest, Variants);

TYPED_TEST(AllocatorClearTest, TheBeginningIsClearedAndTheRestIsNot) {
  for (const std::size_t size : {100U, 250U, 270U}) {
    char* const block = this->AllocateOld(size);
    this->Free(block);
    EXPECT_EQ(FirstNonZero(block, size + kMinSlackBytes),
              size + kMinSlackBytes);
  }
  for (const std::size_t size : kLongSizes) {
    char* const block = this->AllocateOld(size);
    this->Free(block);
    this->ExpectClearUpTo(block, kBound, size);
  }
}

// Whoever frees it: another thread, and one without a heap.
TYPED_TEST(AllocatorClearTest, OtherThreadsClearAsMuch) {
  auto* other = this->test_.NewThread();
  this->allocator_.Free(other, this->allocator_.Allocate(other, 1));
  auto* none = this->test_.NewThread();
  this->allocator_.Free(none, this->allocator_.Allocate(none, 1));
  this->allocator_.Detach(none);
  for (auto** self : {&other, &none}) {
    for (const std::size_t size : kLongSizes) {
      char* const block = this->AllocateOld(size);
      this->allocator_.Free(*self, block);
      this->ExpectClearUpTo(block, kBound, size);
    }
  }
}

TYPED_TEST(AllocatorClearTest, LessThanTheLeastCountsAsTheLeast) {
  TestAllocator<TypeParam::kConfig> test(ClearUpTo(16));
  for (const std::size_t size : kLongSizes) {
    void* const block = test.allocator->Allocate(test.self, size);
    std::memset(block, kOld, size);
    test.allocator->Free(test.self, block);
    this->ExpectClearUpTo(static_cast<char*>(block), kMinPartBytes, size);
  }
}

TYPED_TEST(AllocatorClearTest, AllIsTheDefault) {
  TestAllocator<TypeParam::kConfig> test;
  for (const std::size_t size : kLongSizes) {
    void* const block = test.allocator->Allocate(test.self, size);
    std::memset(block, kOld, size);
    test.allocator->Free(test.self, block);
    EXPECT_EQ(FirstNonZero(block, size), size);
  }
}

// Up to 128 KiB a span is cleared without a question to the kernel, and so is
// the beginning of any: longer ones do not cost more, and no page is given back
// for it.
TYPED_TEST(AllocatorClearTest, NoFreeAsksTheKernel) {
  char* const keeper = this->Allocate(8 * kMiB);
  for (const std::size_t size :
       {std::size_t{200'000}, std::size_t{500'000}, 3 * kMiB}) {
    char* const block = this->Allocate(size);
    block[0] = kOld;
    const std::uint64_t purges = this->test_.memory.calls(VmCall::kPurge);
    this->Free(block);
    EXPECT_EQ(this->test_.memory.calls(VmCall::kPurge), purges) << size;
  }
  this->Free(keeper);
}

TYPED_TEST(AllocatorClearTest, WritesAfterFreeAreFoundInWhatWasCleared) {
  for (const std::size_t size : {300U, 1000U, 5000U, 60'000U, 200'000U}) {
    std::vector<char*> blocks(200);
    for (char*& block : blocks) block = this->AllocateOld(size);
    for (char* block : blocks) this->Free(block);
    const auto use_all = [&] {
      for (char*& block : blocks) block = this->Allocate(size);
      for (char*& block : blocks) block = this->Allocate(size);
    };
    for (const std::size_t at : {0, 16, 250}) {
      blocks[20][at] = 1;
      EXPECT_DEATH(use_all(), "write after free of ") << size;
      // It does not look at slabs that were released.
      if (size <= 1000) {
        EXPECT_EXIT(
            {
              SetOnMisuse(OnMisuse::kLog);
              std::exit(this->allocator_.CheckHeap(this->self_) == 1 ? 0 : 1);
            },
            testing::ExitedWithCode(0), "")
            << size;
      }
      blocks[20][at] = 0;
    }
    // Nobody looks further.
    if (size > kBound) blocks[20][size - 1] = 1;
    EXPECT_EQ(this->allocator_.CheckHeap(this->self_), 0U);
    use_all();
  }
}

// The next owner of the place may read what is not cleared, but not the secret
// that its own bounds depend on.
TYPED_TEST(AllocatorClearTest, NoCanaryIsLeftBehind) {
  for (const std::size_t size : kLongSizes) {
    for (const std::size_t first : {size - 40, size - 9, size}) {
      char* const block = this->AllocateOld(first);
      std::uint64_t canary = 0;
      std::memcpy(&canary, block + first, sizeof canary);
      ASSERT_NE(canary, 0U);
      this->Free(block);
      for (std::size_t at = 0; at + sizeof canary <= size; ++at) {
        ASSERT_NE(std::memcmp(block + at, &canary, sizeof canary), 0) << at;
      }
    }
  }
}

TYPED_TEST(AllocatorClearTest, BoundsAndKindsAreChecked) {
  for (const std::size_t size : kLongSizes) {
    char* const block = this->AllocateOld(size);
    block[size] = static_cast<char>(~block[size]);
    EXPECT_DEATH(this->Free(block), "overflow of ") << size;
    block[size] = static_cast<char>(~block[size]);
    EXPECT_DEATH(this->allocator_.Free(this->self_, block, BlockKind::kNew),
                 "mismatched free of ");
    this->Free(block);
    EXPECT_DEATH(this->Free(block), "double free of ");
  }
}

TYPED_TEST(AllocatorClearTest, CallocClearsWhatIsLeft) {
  for (std::size_t size = 1; size < 400'000; size += 1 + size / 3) {
    std::vector<char*> blocks(40);
    for (int round = 0; round < 4; ++round) {
      for (char*& block : blocks) {
        block = static_cast<char*>(
            this->allocator_.AllocateZeroed(this->self_, 1, size));
        ASSERT_EQ(FirstNonZero(block, size), size);
        std::memset(block, kOld, size);
      }
      for (char* block : blocks) this->Free(block);
      for (char*& block : blocks) block = this->AllocateOld(size);
      for (char* block : blocks) this->Free(block);
    }
  }
}

TYPED_TEST(AllocatorClearTest, ReallocKeepsWhatItShould) {
  const std::size_t sizes[] = {100,    900,     1500,    4000,      9000,
                               60'000, 100'000, 300'000, 3'000'000, 2'500'000,
                               90'000, 70'000,  5000,    3000,      400};
  std::size_t size = 50;
  char* block = this->AllocateOld(size);
  for (const std::size_t next : sizes) {
    block = static_cast<char*>(
        this->allocator_.Reallocate(this->self_, block, next));
    for (std::size_t at = 0; at < std::min(size, next); ++at) {
      ASSERT_EQ(block[at], kOld) << size << " to " << next << " at " << at;
    }
    size = next;
    std::memset(block, kOld, size);
    ASSERT_EQ(this->allocator_.UsableSize(this->self_, block), size);
  }
  this->Free(block);
  EXPECT_EQ(this->allocator_.CheckHeap(this->self_), 0U);
}

// What a Pool block or a span gives up in place is cleared up to the bound.
TYPED_TEST(AllocatorClearTest, AShrinkClearsAsMuch) {
  for (const std::size_t size : {5000U, 60'000U, 120'000U}) {
    char* block = this->AllocateOld(size);
    const std::size_t half = size * 5 / 8;
    ASSERT_EQ(this->allocator_.Reallocate(this->self_, block, half), block);
    const char* const tail = block + half + kMinSlackBytes;
    EXPECT_EQ(FirstNonZero(tail, kBound - kMinSlackBytes),
              kBound - kMinSlackBytes);
    // Of a span the canary's page is clear up to its end.
    const std::size_t kept = size <= kMaxPoolBytes
                                 ? half + kBound
                                 : RoundUp(half + kMinSlackBytes, 4 * kKiB);
    EXPECT_EQ(block[kept], kOld);
    EXPECT_EQ(block[size - 1], kOld);
    this->Free(block);
  }
}

}  // namespace
}  // namespace hakmem
