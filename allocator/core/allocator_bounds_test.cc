// What the hardened variants keep of blocks: sizes, canaries, kinds, clear
// memory, and rest.

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/lookup/lookup.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/report_sources.h"
#include "allocator/reports/report_text.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class AllocatorBoundsTest : public testing::Test {
 protected:
  ~AllocatorBoundsTest() override { allocator_.CheckInvariants(); }

  char* Allocate(std::size_t size) {
    return static_cast<char*>(allocator_.Allocate(self_, size));
  }
  void Free(void* block) { allocator_.Free(self_, block); }
  std::size_t Usable(const void* block) {
    return allocator_.UsableSize(self_, block);
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorBoundsTest, Variants);

// A size of each route.
constexpr std::size_t kSizes[] = {56, 5000, 200'000, std::size_t{300} * kMiB};

TYPED_TEST(AllocatorBoundsTest, KeepsTheSizeThatWasAskedFor) {
  for (std::size_t size = 1; size < 3000; ++size) {
    char* block = this->Allocate(size);
    ASSERT_EQ(this->Usable(block), size);
    std::memset(block, 0xff, size);
    this->Free(block);
  }
}

TYPED_TEST(AllocatorBoundsTest, FindsAByteBehindTheEnd) {
  for (const std::size_t size : kSizes) {
    char* block = this->Allocate(size);
    block[size] = static_cast<char>(~block[size]);
    EXPECT_DEATH(this->Free(block), "overflow of ") << size;
    EXPECT_DEATH(this->allocator_.Reallocate(this->self_, block, size + 1),
                 "overflow of ")
        << size;
    block[size] = static_cast<char>(~block[size]);
    this->Free(block);
  }
}

// Tiny blocks have little slack, and another block behind it.
TYPED_TEST(AllocatorBoundsTest, FindsAByteBehindTheCanary) {
  for (const std::size_t size : kSizes) {
    if (size <= kMaxTinyBytes) continue;
    const std::size_t page_end = RoundUp(size + kMinSlackBytes, 4 * kKiB) - 1;
    const std::size_t last = size <= kMaxPoolBytes ? size + 71 : page_end;
    char* block = this->Allocate(size);
    for (const std::size_t at : {size + 8, size + 40, last}) {
      block[at] = 1;
      EXPECT_DEATH(this->Free(block),
                   "overflow of .*byte " + std::to_string(at))
          << size;
      EXPECT_DEATH(this->allocator_.Reallocate(this->self_, block, size + 1),
                   "overflow of ")
          << size;
      block[at] = 0;
    }
    this->Free(block);
  }
}

// Whatever the owners before have left there.
TYPED_TEST(AllocatorBoundsTest, SlackIsClearWhenABlockIsHandedOutOrResized) {
  HeapOptions options;
  options.clear_bytes = kMinPartBytes;
  TestAllocator<TypeParam::kConfig> test(options);
  const auto allocate = [&](std::size_t size) {
    void* block = test.allocator->Allocate(test.self, size);
    std::memset(block, 0xff, size);
    return block;
  };
  for (const std::size_t most : {5100U, 60'000U, 200'000U, 1'000'000U}) {
    for (int round = 0; round < 3; ++round) {
      std::vector<void*> blocks;
      for (unsigned i = 0; i < 60; ++i) {
        blocks.push_back(allocate(most - i * 37 * (round % 2)));
      }
      for (void*& block : blocks) {
        for (const std::size_t less : {100U, 300U, 0U}) {
          block = test.allocator->Reallocate(test.self, block, most - less);
        }
        test.allocator->Free(test.self, block);
      }
    }
  }
  test.allocator->CheckInvariants();
}

TYPED_TEST(AllocatorBoundsTest, NoByteIsNotOneByte) {
  char* const block = this->Allocate(1);
  void* const none =
      this->allocator_.AllocateAligned(this->self_, 2 * kMaxPoolBytes, 0);
  EXPECT_DEATH(this->allocator_.FreeSized(this->self_, block, 0, 16),
               "wrong-size free of .*given 0 bytes, asked for with 1 bytes");
  EXPECT_DEATH(
      this->allocator_.FreeSized(this->self_, none, 1, 2 * kMaxPoolBytes),
      "wrong-size free of .*given 1 bytes, asked for with 0 bytes");
  this->allocator_.FreeSized(this->self_, block, 1, 16);
  this->allocator_.FreeSized(this->self_, none, 0, 2 * kMaxPoolBytes);
}

TYPED_TEST(AllocatorBoundsTest, ResizingKeepsContentAndMovesTheCanary) {
  char* block = this->Allocate(100);
  std::memset(block, 0x11, 100);
  for (const std::size_t size : {103U, 91U, 104U, 95U}) {
    ASSERT_EQ(this->allocator_.Reallocate(this->self_, block, size), block);
    EXPECT_EQ(this->Usable(block), size);
    for (std::size_t i = 0; i < 91; ++i) ASSERT_EQ(block[i], 0x11);
    block[size] = static_cast<char>(~block[size]);
    EXPECT_DEATH(this->Free(block), "overflow of ");
    block[size] = static_cast<char>(~block[size]);
  }
  this->Free(block);
}

TYPED_TEST(AllocatorBoundsTest, KindsMustAgree) {
  for (const std::size_t size : kSizes) {
    void* block = this->Allocate(size);
    this->allocator_.SetKind(block, BlockKind::kNewArray);
    EXPECT_DEATH(this->Free(block),
                 "mismatched free of .*allocated by new\\[\\]")
        << size;
    EXPECT_DEATH(this->allocator_.Reallocate(this->self_, block, 10),
                 "mismatched realloc of ")
        << size;
    this->allocator_.Free(this->self_, block, BlockKind::kNewArray);
  }
}

// A refused call touches nothing, whoever makes it, and its report says so.
TYPED_TEST(AllocatorBoundsTest, WhatIsRefusedStaysLive) {
  static Ace* ace;
  ace = &this->allocator_.ace();
  SetSurroundingsSource([](std::uintptr_t address, Surroundings& around) {
    around = LookAround(*ace, address);
  });
  const std::string live = "[^\n]*\n[^\n]*\n  block: 0x[^\n]*, live\\)";
  auto* other = this->test_.NewThread();
  this->allocator_.Free(other, this->allocator_.Allocate(other, 56));
  for (const std::size_t size : kSizes) {
    for (auto** self : {&this->self_, &other}) {
      char* block = this->Allocate(size);
      block[size] ^= 1;
      EXPECT_DEATH(this->allocator_.Free(*self, block), "overflow of " + live)
          << size;
      SetOnMisuse(OnMisuse::kLog);
      this->allocator_.Free(*self, block);
      EXPECT_EQ(this->allocator_.Reallocate(*self, block, 7), nullptr);
      EXPECT_EQ(this->Usable(block), size);
      EXPECT_EQ(this->allocator_.CheckHeap(this->self_), 1U) << size;
      SetOnMisuse(OnMisuse::kAbort);
      block[size] ^= 1;
      EXPECT_DEATH(this->allocator_.Free(*self, block, BlockKind::kNew),
                   "mismatched free of " + live)
          << size;
      SetOnMisuse(OnMisuse::kLog);
      this->allocator_.Free(*self, block, BlockKind::kNew);
      SetOnMisuse(OnMisuse::kAbort);
      EXPECT_EQ(this->Usable(block), size);
      this->Free(block);
    }
  }
  SetSurroundingsSource(nullptr);
  this->allocator_.Detach(other);
}

TYPED_TEST(AllocatorBoundsTest, KindsMayBeLetPass) {
  HeapOptions options;
  options.check_kinds = 0;
  TestAllocator<TypeParam::kConfig> test(options);
  for (const std::size_t size : kSizes) {
    void* block = test.allocator->Allocate(test.self, size);
    test.allocator->SetKind(block, BlockKind::kNew);
    test.allocator->Free(test.self, block);
    // It is a free like others, by the thread that has the block.
    const AddressFacts facts =
        LookUp(test.allocator->ace(), reinterpret_cast<Address>(block));
    if (size <= kMaxPoolBytes) EXPECT_STREQ(facts.block.state, "free");
  }
  test.allocator->CheckInvariants();
}

// A block whose new place is refused stays where it is, as others do.
TYPED_TEST(AllocatorBoundsTest, OfAKindThatIsLetPassItShrinksWithoutMemory) {
  HeapOptions options;
  options.check_kinds = 0;
  TestAllocator<TypeParam::kConfig> test(options);
  for (const std::size_t size : {5000U, 200'000U}) {
    void* block = test.allocator->Allocate(test.self, size);
    test.allocator->SetKind(block, BlockKind::kNew);
    std::memset(block, 0x11, size);
    test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
    EXPECT_EQ(test.allocator->Reallocate(test.self, block, 90), block) << size;
    test.memory.RefuseNothing();
    EXPECT_EQ(test.allocator->UsableSize(test.self, block), 90U);
    EXPECT_EQ(static_cast<char*>(block)[89], 0x11);
    test.allocator->Free(test.self, block);
  }
  test.allocator->CheckInvariants();
}

TYPED_TEST(AllocatorBoundsTest, BlocksAreClearWhenTheyAreHandedOut) {
  for (const std::size_t size : {60U, 1000U, 5000U}) {
    std::vector<char*> blocks(300);
    for (int round = 0; round < 3; ++round) {
      for (char*& block : blocks) {
        block = this->Allocate(size);
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(block[i], 0);
        std::memset(block, 0xff, size);
      }
      for (char* block : blocks) this->Free(block);
    }
  }
}

TYPED_TEST(AllocatorBoundsTest, WritesAfterFreeAreFoundBeforeReuse) {
  for (const std::size_t size : {60U, 5000U, 200'000U}) {
    std::vector<char*> blocks(200);
    for (char*& block : blocks) block = this->Allocate(size);
    for (char* block : blocks) this->Free(block);
    blocks[100][16] = 1;
    const auto use_all = [&] {
      for (char*& block : blocks) block = this->Allocate(size);
      for (char*& block : blocks) block = this->Allocate(size);
    };
    EXPECT_DEATH(use_all(), "write after free of .*from offset 16: 01") << size;
    blocks[100][16] = 0;
  }
}

// With HAKMEM_ON_MISUSE=log the program goes on, also in a thread whose stack
// is short.
TYPED_TEST(AllocatorBoundsTest, ManyBlocksWrittenAfterFreeArePassedOver) {
  constexpr std::size_t kBlocks = 20'000;
  std::vector<char*> blocks(kBlocks);
  for (char*& block : blocks) block = this->Allocate(40);
  for (char* block : blocks) this->Free(block);
  for (char* block : blocks) *block = 1;
  SetOnMisuse(OnMisuse::kLog);
  SetReportStacks(false);
  const std::uint64_t before = MisuseCount();
  struct Call {
    std::function<void*()> allocate;
    void* block = nullptr;
  } call = {[this] { return this->Allocate(40); }};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kMiB), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* context) -> void* {
                  Call& mine = *static_cast<Call*>(context);
                  mine.block = mine.allocate();
                  return nullptr;
                },
                &call),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  SetReportStacks(true);
  SetOnMisuse(OnMisuse::kAbort);
  EXPECT_GT(MisuseCount(), before + kBlocks / 2);
  ASSERT_NE(call.block, nullptr);
  EXPECT_EQ(std::count(blocks.begin(), blocks.end(), call.block), 0);
  this->Free(call.block);
}

// Half a ring of others is freed before a block can come back.
TYPED_TEST(AllocatorBoundsTest, FreedBlocksRest) {
  constexpr std::size_t kSize = 56;
  std::vector<char*> blocks(2000);
  for (char*& block : blocks) block = this->Allocate(kSize);
  for (char* block : blocks) this->Free(block);
  const std::size_t ring = MaxResting(TinyClassOf(kSize + kMinSlackBytes));
  ASSERT_GE(ring, 32U);
  for (int i = 0; i < 200; ++i) {
    char* block = this->Allocate(kSize);
    this->Free(block);
    for (std::size_t others = 0; others < ring / 2 - 1; ++others) {
      char* other = this->Allocate(kSize);
      ASSERT_NE(other, block);
      this->Free(other);
    }
  }
}

TYPED_TEST(AllocatorBoundsTest, BlocksDoNotComeInOrder) {
  std::vector<char*> blocks(500);
  for (char*& block : blocks) block = this->Allocate(56);
  std::size_t neighbours = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    neighbours += blocks[i] - blocks[i - 1] == 64 ? 1 : 0;
  }
  EXPECT_LT(neighbours, blocks.size() / 4);
  EXPECT_EQ(std::set<char*>(blocks.begin(), blocks.end()).size(), 500U);
  for (char* block : blocks) this->Free(block);
}

}  // namespace
}  // namespace hakmem
