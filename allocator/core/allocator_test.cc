#include "allocator/core/allocator.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/heap/magazine.h"
#include "allocator/lookup/lookup.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/resident_pages.h"
#include "allocator/platform/virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSpanBytes = 300 * kKiB;
constexpr std::size_t kHugeBytes = kMaxSpanBytes + 1;
constexpr std::size_t kLongSpanBytes = 20 * kMiB;
constexpr std::size_t kPageBytes = 4096;

template <typename V>
class AllocatorTest : public testing::Test {
 protected:
  ~AllocatorTest() override { allocator_.CheckInvariants(); }

  std::size_t Usable(const void* block) {
    return allocator_.UsableSize(self_, block);
  }

  // Null, though gcc cannot know it: it would warn of paths that null does not
  // take.
  void* volatile none_ = nullptr;
  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorTest, Variants);

TYPED_TEST(AllocatorTest, ServesEverySize) {
  ModelHeap model;
  const auto serve = [&](std::size_t size) {
    void* block = this->allocator_.Allocate(this->self_, size);
    ASSERT_NE(block, nullptr) << size;
    model.Add(block, size, kMinAlignmentBytes, this->Usable(block));
  };
  for (std::size_t size = 0; size <= 2100; ++size) serve(size);
  for (unsigned i = 0; i < kClassCount; ++i) {
    const std::size_t size = ClassBytes(static_cast<SizeClass>(i));
    for (const std::size_t near : {size - 1, size, size + 1}) serve(near);
  }
  for (std::size_t size = 2 * kMaxPoolBytes; size < kLongSpanBytes; size *= 2) {
    for (const std::size_t near : {size - 1, size, size + 1}) serve(near);
  }
  serve(kLongSpanBytes);
  for (const std::size_t size :
       {kHugeBytes, 2 * kMaxSpanBytes, 5 * kMaxSpanBytes}) {
    serve(size);
  }
  model.CheckAll();
  while (!model.empty()) {
    void* block = model.Pick(model.count() / 2);
    model.Remove(block);
    this->allocator_.Free(this->self_, block);
  }
  this->allocator_.upkeep().Purge(this->self_);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().granted_bytes, 0U);
}

TYPED_TEST(AllocatorTest, UsableSizeIsExactOrTheClassTheUnitsOrThePages) {
  const auto usable = [&](std::size_t size) {
    void* block = this->allocator_.Allocate(this->self_, size);
    const std::size_t bytes = this->Usable(block);
    this->allocator_.Free(this->self_, block);
    return bytes;
  };
  const bool exact = TypeParam::kConfig.check_bounds;
  const auto expect = [&](std::size_t size, std::size_t bytes) {
    EXPECT_EQ(usable(size), exact ? size : bytes);
  };
  expect(0, 16);
  expect(100, 112);
  expect(1025, 1280);
  expect(kMaxPoolBytes, kMaxPoolBytes);
  expect(kMaxPoolBytes + 1, 2 * kUnitBytes);
  expect(kLongSpanBytes, kLongSpanBytes);
  expect(kMaxSpanBytes + 1, kMaxSpanBytes + this->test_.memory.PageBytes());
  EXPECT_EQ(this->Usable(nullptr), 0U);
}

TYPED_TEST(AllocatorTest, ServesEveryAlignment) {
  ModelHeap model;
  for (std::size_t alignment = 1; alignment <= 512 * kMiB; alignment *= 2) {
    const std::size_t near = std::min(alignment, 4 * kMiB);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{100}, near - 1, near,
          near + 1, std::size_t{70'000}}) {
      void* block =
          this->allocator_.AllocateAligned(this->self_, alignment, size);
      ASSERT_NE(block, nullptr) << alignment << " " << size;
      model.Add(block, size, alignment, this->Usable(block));
    }
  }
  while (!model.empty()) {
    void* block = model.Pick(0);
    const ModelHeap::Block facts = model.At(block);
    model.Remove(block);
    this->allocator_.FreeSized(this->self_, block, facts.size, facts.alignment);
  }
}

TYPED_TEST(AllocatorTest, SizedFreeTakesEverySizeThatWasAskedFor) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{17},
        std::size_t{1024}, std::size_t{1025}, std::size_t{60'000}, kSpanBytes,
        kHugeBytes}) {
    void* block = this->allocator_.Allocate(this->self_, size);
    this->allocator_.FreeSized(this->self_, block, size, 16);
    block = this->allocator_.Allocate(this->self_, size);
    EXPECT_DEATH(
        this->allocator_.FreeSized(this->self_, block, size + kHugeBytes, 16),
        "hakmem: fatal: wrong-size free");
    this->allocator_.FreeSized(this->self_, block, size, 16);
  }
  this->allocator_.FreeSized(this->self_, this->none_, 1, 16);
  this->allocator_.Free(this->self_, this->none_);
}

// To the page, where what was asked for is not known.
TYPED_TEST(AllocatorTest, SizedFreeOfAHugeBlock) {
  constexpr std::size_t kMoreBytes = kHugeBytes + 3 * kSuperSlabBytes;
  for (const bool refused : {false, true}) {
    void* block = this->allocator_.Allocate(this->self_, kMoreBytes);
    for (const std::size_t wrong : {kHugeBytes, kMoreBytes - kPageBytes}) {
      EXPECT_DEATH(this->allocator_.FreeSized(this->self_, block, wrong, 16),
                   "hakmem: fatal: wrong-size free");
    }
    if (refused) {
      this->test_.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kOnce,
                                    VmCall::kUnmap);
    }
    block = this->allocator_.Reallocate(this->self_, block, kHugeBytes);
    EXPECT_EQ(this->test_.memory.refused(), refused ? 1U : 0U);
    this->allocator_.FreeSized(this->self_, block, kHugeBytes, 16);
  }
}

// Between all routes and within each, up and down.
TYPED_TEST(AllocatorTest, ReallocateKeepsContent) {
  ModelHeap model;
  const std::size_t sizes[] = {1,
                               16,
                               24,
                               700,
                               3000,
                               50'000,
                               kMaxPoolBytes,
                               kMaxPoolBytes + 1,
                               kSpanBytes,
                               5 * kMiB,
                               9 * kMiB,
                               kLongSpanBytes,
                               kHugeBytes,
                               2 * kMaxSpanBytes};
  for (const std::size_t from : sizes) {
    for (const std::size_t to : sizes) {
      void* block = this->allocator_.Allocate(this->self_, from);
      model.Add(block, from, kMinAlignmentBytes, this->Usable(block));
      void* moved = this->allocator_.Reallocate(this->self_, block, to);
      ASSERT_NE(moved, nullptr) << from << " " << to;
      model.Resize(block, moved, to, this->Usable(moved));
      model.Remove(moved);
      this->allocator_.Free(this->self_, moved);
    }
  }
  this->allocator_.CheckInvariants();
}

TYPED_TEST(AllocatorTest, ReallocateWithinAClassStaysInPlace) {
  void* block = this->allocator_.Allocate(this->self_, 1100);
  const std::size_t most =
      1280 - TestedAllocator<TypeParam::kConfig>::kSlackBytes;
  EXPECT_EQ(this->allocator_.Reallocate(this->self_, block, most), block);
  EXPECT_EQ(this->allocator_.Reallocate(this->self_, block, 1025), block);
  EXPECT_NE(this->allocator_.Reallocate(this->self_, block, 1281), block);
  block = this->allocator_.Allocate(this->self_, 20);
  void* least = this->allocator_.Reallocate(this->self_, block, 0);
  EXPECT_EQ(this->Usable(least), TypeParam::kConfig.check_bounds ? 1U : 16U);
}

// Whatever the block's address is a multiple of.
TYPED_TEST(AllocatorTest, NoBlockWasAskedForWithSuchAnAlignment) {
  for (const std::size_t size : {100, 5000, 100'000}) {
    void* block = this->allocator_.Allocate(this->self_, size);
    for (const std::size_t alignment : {0, 3, 12, 24}) {
      EXPECT_DEATH(
          this->allocator_.FreeSized(this->self_, block, size, alignment),
          "wrong-alignment free of ")
          << alignment;
    }
    this->allocator_.FreeSized(this->self_, block, size, 1);
  }
}

TYPED_TEST(AllocatorTest, SpansGrowInPlaceAndMoveTheirPages) {
  auto* block = static_cast<char*>(
      this->allocator_.Allocate(this->self_, 100 * kUnitBytes));
  block[0] = 7;
  EXPECT_EQ(this->allocator_.Reallocate(this->self_, block, 101 * kUnitBytes),
            block);
  ASSERT_NE(this->allocator_.Allocate(this->self_, kMaxPoolBytes + 1), nullptr);
  const std::uint64_t moves = this->test_.memory.calls(VmCall::kMove);
  auto* moved = static_cast<char*>(
      this->allocator_.Reallocate(this->self_, block, 300 * kUnitBytes));
  EXPECT_NE(moved, block);
  EXPECT_EQ(moved[0], 7);
  EXPECT_EQ(this->test_.memory.calls(VmCall::kMove), moves + 1);
}

// A span whose pages are not moved is copied as far as it was touched.
TYPED_TEST(AllocatorTest, SparseSpansStaySparse) {
  for (const std::size_t units : {4, 20, 27}) {
    TestAllocator<TypeParam::kConfig> test;
    auto& allocator = *test.allocator;
    const std::size_t bytes = units * kUnitBytes;
    auto* block = static_cast<char*>(allocator.Allocate(test.self, bytes));
    block[0] = 7;
    block[bytes - 1] = 9;
    ASSERT_NE(allocator.Allocate(test.self, kMaxPoolBytes + 1), nullptr);
    const std::uint64_t moves = test.memory.calls(VmCall::kMove);
    auto* moved = static_cast<char*>(
        allocator.Reallocate(test.self, block, bytes / 2 * 3));
    EXPECT_NE(moved, block);
    EXPECT_EQ(moved[0], 7);
    EXPECT_EQ(moved[bytes - 1], 9);
    EXPECT_EQ(test.memory.calls(VmCall::kMove), moves);
    const std::size_t pages = bytes / test.memory.PageBytes();
    EXPECT_LE(CountResidentPages(test.memory, reinterpret_cast<Address>(moved),
                                 pages, pages),
              3U);
  }
}

TYPED_TEST(AllocatorTest, SpansOf2MiBMoveTheirPages) {
  auto* block = this->allocator_.Allocate(this->self_, 32 * kUnitBytes);
  ASSERT_NE(this->allocator_.Allocate(this->self_, kMaxPoolBytes + 1), nullptr);
  const std::uint64_t moves = this->test_.memory.calls(VmCall::kMove);
  EXPECT_NE(this->allocator_.Reallocate(this->self_, block, 48 * kUnitBytes),
            block);
  EXPECT_EQ(this->test_.memory.calls(VmCall::kMove), moves + 1);
}

// Between the last span and the first Huge block, with all bytes copied.
TYPED_TEST(AllocatorTest, TheLongestSpanIsServed) {
  if (kThreadSanitizer) GTEST_SKIP() << "four times the memory";
  auto* block =
      static_cast<char*>(this->allocator_.Allocate(this->self_, kMaxSpanBytes));
  EXPECT_EQ(this->Usable(block), kMaxSpanBytes);
  block[0] = 5;
  block[kMaxSpanBytes - 1] = 7;
  for (const std::size_t size : {kHugeBytes, kMaxSpanBytes}) {
    block = static_cast<char*>(
        this->allocator_.Reallocate(this->self_, block, size));
    EXPECT_GE(this->Usable(block), size);
    EXPECT_EQ(block[0], 5);
    EXPECT_EQ(block[kMaxSpanBytes - 1], 7);
  }
  this->allocator_.Free(this->self_, block);
}

// Each outcome of a move that the kernel does not do as asked.
TYPED_TEST(AllocatorTest, SpansKeepTheirContentWhenPagesCannotMove) {
  for (int outcome = 0; outcome < 3; ++outcome) {
    TestAllocator<TypeParam::kConfig> test;
    auto& allocator = *test.allocator;
    ModelHeap model;
    void* block = allocator.Allocate(test.self, 100 * kUnitBytes);
    model.Add(block, 100 * kUnitBytes, 16, 100 * kUnitBytes);
    ASSERT_NE(allocator.Allocate(test.self, kMaxPoolBytes + 1), nullptr);
    if (outcome == 0) test.memory.LoseTargetOfRefusedMoves();
    if (outcome == 2) test.memory.LoseSourceOfMoves();
    if (outcome != 2) {
      test.memory.RefuseCall(1, EFAULT, FakeVirtualMemory::Refuse::kOnce,
                             VmCall::kMove);
    }
    void* moved = allocator.Reallocate(test.self, block, 300 * kUnitBytes);
    ASSERT_NE(moved, nullptr);
    model.Resize(block, moved, 300 * kUnitBytes, 300 * kUnitBytes);
    allocator.CheckInvariants();
    // What is lost is not handed out again.
    for (int i = 0; i < 20; ++i) {
      void* other = allocator.AllocateZeroed(test.self, 1, 50 * kUnitBytes);
      ModelHeap::CheckZero(other, 50 * kUnitBytes);
      model.Add(other, 50 * kUnitBytes, 16, 50 * kUnitBytes);
    }
    model.CheckAll();
    while (!model.empty()) {
      void* each = model.Pick(0);
      model.Remove(each);
      allocator.Free(test.self, each);
    }
    allocator.CheckInvariants();
  }
}

TYPED_TEST(AllocatorTest, KnowsLiveBlocksFromAllElse) {
  const std::size_t sizes[] = {40, 1024, 3000, 60'000, kSpanBytes, kHugeBytes};
  for (const std::size_t size : sizes) {
    auto* block =
        static_cast<char*>(this->allocator_.Allocate(this->self_, size));
    const std::size_t usable = this->Usable(block);
    EXPECT_GE(usable, size);
    EXPECT_DEATH(this->Usable(block + 1), "\\(interior pointer: 1 bytes");
    EXPECT_DEATH(this->Usable(block + 16), "\\(interior pointer: 16 bytes");
    EXPECT_DEATH(this->allocator_.Free(this->self_, block + usable - 16),
                 "hakmem: fatal: invalid free .*interior pointer");
    this->allocator_.Free(this->self_, block);
    EXPECT_DEATH(this->allocator_.Free(this->self_, block),
                 "hakmem: fatal: double free");
    EXPECT_DEATH(this->Usable(block), "freed block");
  }
  int on_stack = 0;
  EXPECT_DEATH(this->allocator_.Free(this->self_, &on_stack),
               "not hakmem's memory");
}

TYPED_TEST(AllocatorTest, ForeignPointersAreKnownBeforeTheFirstCall) {
  alignas(64) static char other[64];
  EXPECT_DEATH(this->allocator_.Free(this->self_, other),
               "not hakmem's memory");
  this->allocator_.Free(this->self_, this->none_);
  EXPECT_EQ(this->Usable(nullptr), 0U);
}

TYPED_TEST(AllocatorTest, PurgeGivesBackAllThatIsFree) {
  std::vector<void*> blocks;
  for (int i = 0; i < 3000; ++i) {
    blocks.push_back(this->allocator_.Allocate(this->self_, 4000));
  }
  blocks.push_back(this->allocator_.Allocate(this->self_, 5 * kMiB));
  // No more than of magazines.
  EXPECT_LE(this->allocator_.upkeep().Purge(this->self_),
            this->test_.memory.PageBytes());
  for (void* block : blocks) this->allocator_.Free(this->self_, block);
  this->test_.memory.ForgetPurges();
  EXPECT_GE(this->allocator_.upkeep().Purge(this->self_), 16 * kMiB);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().cached_bytes, 0U);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().granted_bytes, 0U);
  EXPECT_EQ(this->allocator_.upkeep().Purge(this->self_), 0U);
}

TYPED_TEST(AllocatorTest, FreedMemoryIsWipedWhereTheVariantSaysSo) {
  for (const std::size_t size :
       {std::size_t{100}, std::size_t{5000}, kSpanBytes}) {
    auto* block =
        static_cast<char*>(this->allocator_.Allocate(this->self_, size));
    std::memset(block, 0x5a, size);
    this->allocator_.Free(this->self_, block);
    // Still mapped, and in nobody's hands.
    const char expected = TypeParam::kConfig.zero_on_free ? 0 : 0x5a;
    EXPECT_EQ(block[0], expected);
    EXPECT_EQ(block[size - 1], expected);
  }
}

// Burst after burst, whoever asks for the purge: malloc_trim or the helper.
TEST(AllocatorPurgeTest, FreeMagazinesGoBackToTheKernel) {
  TestAllocator<kRelease> test;
  auto& allocator = *test.allocator;
  constexpr std::size_t kBlocks = 160'000;  // 1.2 MiB of magazines
  std::vector<void*> blocks(kBlocks);
  const auto burst = [&] {
    for (void*& block : blocks) block = allocator.Allocate(test.self, 16);
    for (void* block : blocks) allocator.Free(test.self, block);
  };
  burst();  // shows how much room the depot needs
  for (const bool by_helper : {false, true}) {
    for (void*& block : blocks) block = allocator.Allocate(test.self, 16);
    const MagazineTop magazine = test.self->Cache(ClassOf(16)).top;
    for (void* block : blocks) allocator.Free(test.self, block);
    std::size_t purged_bytes = 0;
    test.memory.WatchLongCalls(
        [&](VmCall call, Address address, std::size_t bytes) {
          const Address near = magazine - 16 * kMiB;
          const bool is_near = address - near < 32 * kMiB;
          if (call == VmCall::kPurge && is_near) purged_bytes += bytes;
        });
    if (by_helper) {
      allocator.upkeep().Reclaim(test.self);
      test.memory.AdvanceMs(10'000);
      allocator.upkeep().Maintain();
    } else {
      EXPECT_GE(allocator.upkeep().Purge(test.self), kMiB);
    }
    test.memory.WatchLongCalls(nullptr);
    EXPECT_GE(purged_bytes, kMiB) << by_helper;
    allocator.CheckInvariants();
  }
}

// Though a thread of the program sees first that it is time, and looks
// after 64.
TEST(AllocatorPurgeTest, TheHelperLooksAfterAllHeaps) {
  TestAllocator<kRelease> test;
  auto& allocator = *test.allocator;
  ASSERT_NE(allocator.Allocate(test.self, 16), nullptr);
  for (int i = 0; i < 200; ++i) {
    auto* sleeper = test.NewThread();
    std::vector<void*> blocks(200);
    for (void*& block : blocks) block = allocator.Allocate(sleeper, 4000);
    for (void* block : blocks) allocator.Free(sleeper, block);
  }
  const std::uint64_t before = allocator.upkeep().Snapshot().granted_bytes;
  for (int interval = 0; interval < 3; ++interval) {
    test.memory.AdvanceMs(1000);
    for (int i = 0; i < 8; ++i) test.self->CountSlowPath();
    allocator.upkeep().Maintain();
  }
  EXPECT_LT(allocator.upkeep().Snapshot().granted_bytes, before / 2);
}

// And after none twice: what a heap uses in each interval stays.
TEST(AllocatorPurgeTest, TheHelperLeavesWhatIsUsedInEachInterval) {
  TestAllocator<kRelease> test;
  auto& allocator = *test.allocator;
  ASSERT_NE(allocator.Allocate(test.self, 16), nullptr);
  std::vector<decltype(test.self)> workers(100, test.NewThread());
  std::uint64_t before = 0;
  for (int interval = 0; interval < 6; ++interval) {
    for (auto*& worker : workers) {
      std::vector<void*> blocks(200);
      for (void*& block : blocks) block = allocator.Allocate(worker, 64);
      for (void* block : blocks) allocator.Free(worker, block);
    }
    const Statistics now = allocator.upkeep().Snapshot();
    if (interval == 1) before = now.refills_from_partial_slabs;
    if (interval > 1) EXPECT_EQ(now.refills_from_partial_slabs, before);
    test.memory.AdvanceMs(1000);
    for (int i = 0; i < 8; ++i) test.self->CountSlowPath();
    allocator.upkeep().Maintain();
  }
}

// And gives free magazines back though a thread of the program, of which there
// are few, always sees first that it is time.
TEST(AllocatorPurgeTest, TheHelperGivesMagazinesBackThoughOthersAreFirst) {
  TestAllocator<kRelease> test;
  auto& allocator = *test.allocator;
  std::vector<void*> blocks(160'000);  // 1.2 MiB of magazines
  for (int burst = 0; burst < 2; ++burst) {
    for (void*& block : blocks) block = allocator.Allocate(test.self, 16);
    if (burst == 1) break;
    for (void* block : blocks) allocator.Free(test.self, block);
  }
  const MagazineTop magazine = test.self->Cache(ClassOf(16)).top;
  for (void* block : blocks) allocator.Free(test.self, block);
  allocator.upkeep().Reclaim(test.self);
  std::size_t purged_bytes = 0;
  test.memory.WatchLongCalls(
      [&](VmCall call, Address address, std::size_t bytes) {
        const bool is_near = address - (magazine - 16 * kMiB) < 32 * kMiB;
        if (call == VmCall::kPurge && is_near) purged_bytes += bytes;
      });
  test.memory.AdvanceMs(10'000);
  for (int i = 0; i < 8; ++i) test.self->CountSlowPath();
  allocator.upkeep().Maintain();
  test.memory.WatchLongCalls(nullptr);
  EXPECT_GE(purged_bytes, kMiB);
}

}  // namespace
}  // namespace hakmem
