// The check of the whole heap, and the checks after slow paths.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSizes[] = {1,      40,      1000,     5000,
                                  60'000, 200'000, 3 * kMiB, 300 * kMiB};

template <typename V>
class AllocatorCheckTest : public testing::Test {
 protected:
  char* Allocate(std::size_t size) {
    return static_cast<char*>(allocator_.Allocate(test_.self, size));
  }
  std::size_t Check() { return allocator_.CheckHeap(test_.self); }

  TestAllocator<V::kConfig> test_;
  Allocator<V::kConfig>& allocator_ = *test_.allocator;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorCheckTest, Variants);

TYPED_TEST(AllocatorCheckTest, ASoundHeapHasNoDamage) {
  EXPECT_EQ(this->Check(), 0U) << "before the first block";
  std::mt19937 random(1);
  std::vector<char*> blocks;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t size = kSizes[random() % 7];
    blocks.push_back(this->Allocate(size));
    std::memset(blocks.back(), 'x', size);
    if (random() % 2 == 0) {
      const std::size_t at = random() % blocks.size();
      this->allocator_.Free(this->test_.self, blocks[at]);
      blocks[at] = blocks.back();
      blocks.pop_back();
    }
  }
  blocks.push_back(this->Allocate(kSizes[7]));
  EXPECT_EQ(this->Check(), 0U);
  for (char* block : blocks) this->allocator_.Free(this->test_.self, block);
  EXPECT_EQ(this->Check(), 0U);
}

// Of a heap whose thread is gone, and of one that is another's.
TYPED_TEST(AllocatorCheckTest, ChecksOtherHeapsToo) {
  auto* other = this->test_.NewThread();
  void* theirs = this->allocator_.Allocate(other, 40);
  EXPECT_EQ(this->Check(), 0U);
  this->allocator_.Free(this->test_.self, theirs);
  EXPECT_EQ(this->Check(), 0U);
  this->allocator_.Detach(other);
  EXPECT_EQ(this->Check(), 0U);
}

template <typename V>
class AllocatorDamageTest : public AllocatorCheckTest<V> {};
using CheckedVariants = testing::Types<Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorDamageTest, CheckedVariants);

TYPED_TEST(AllocatorDamageTest, FindsAnOverflowOfAnySize) {
  for (const std::size_t size : kSizes) {
    char* block = this->Allocate(size);
    EXPECT_DEATH(
        {
          block[size] ^= 1;
          this->Check();
        },
        "overflow of 0x")
        << size;
  }
}

TYPED_TEST(AllocatorDamageTest, FindsAWriteAfterFree) {
  for (const std::size_t size : kSizes) {
    if (size > kMaxSpanBytes) continue;  // unmapped when it was freed
    char* block = this->Allocate(size);
    this->allocator_.Free(this->test_.self, block);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::ostringstream expected;
      expected << "write after free of " << static_cast<void*>(block)
               << " \\([0-9]+ bytes from offset " << at;
      EXPECT_DEATH(
          {
            block[at] ^= 1;
            this->Check();
          },
          expected.str())
          << size;
    }
  }
}

TYPED_TEST(AllocatorDamageTest, CountsEachReleasedBlockOnce) {
  SetOnMisuse(OnMisuse::kLog);
  char* span = this->Allocate(3 * kMiB);
  char* other = this->Allocate(3 * kMiB);
  this->allocator_.Free(this->test_.self, span);
  this->allocator_.Free(this->test_.self, other);
  span[0] = span[1] = span[kMiB] = 'x';
  EXPECT_EQ(this->Check(), 1U);
  other[2 * kMiB] = 'x';
  EXPECT_EQ(this->Check(), 2U);
  SetOnMisuse(OnMisuse::kAbort);
}

TYPED_TEST(AllocatorDamageTest, FindsItInTheHeapOfAnotherThread) {
  auto* other = this->test_.NewThread();
  auto* block = static_cast<char*>(this->allocator_.Allocate(other, 40));
  EXPECT_DEATH(
      {
        block[40] ^= 1;
        this->Check();
      },
      "overflow of 0x");
}

// Damage of hakmem's own tables is found by the next slow path of the heap, not
// only by a check of the whole.
TEST(AllocatorSlowPathCheckTest, EachSlowPathChecksWhatItTouched) {
  TestAllocator<kDebug> test;
  Allocator<kDebug>& allocator = *test.allocator;
  std::vector<void*> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(allocator.Allocate(test.self, 40));
  }
  for (void* block : blocks) allocator.Free(test.self, block);
  const Zone& zone = allocator.ace().region().fine();
  const auto damage_one = [&] {
    for (void* block : blocks) {
      auto& header = zone.header(reinterpret_cast<Address>(block));
      if (HeaderState(header.load()) != BlockState::kFree) continue;
      header.store(MakeHeader(BlockState::kQueued, HeaderCode(header.load())));
    }
  };
  EXPECT_DEATH(
      {
        damage_one();
        // Until a magazine is full.
        for (int i = 0; i < 200; ++i) {
          allocator.Free(test.self, allocator.Allocate(test.self, 39));
        }
      },
      "internal check failed|damaged header");
}

}  // namespace
}  // namespace hakmem
