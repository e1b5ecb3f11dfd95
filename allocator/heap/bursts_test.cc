// Bursts: many blocks are allocated, then all are freed, again and again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/spare_magazines.h"
#include "allocator/heap/test_heaps.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const SizeClass kSmall = ClassOf(64);
// Beyond two magazines and the spare ones that each heap keeps.
constexpr std::size_t kBurst = 200 * std::size_t{kMagazineSlots};
// 400 KiB of magazines.
constexpr std::size_t kLongBurst = 800 * std::size_t{kMagazineSlots};
constexpr std::size_t kSlackBytes = 128 * kKiB;

template <typename V>
class BurstsTest : public HeapsTest<V> {
 protected:
  using Heap = typename HeapsTest<V>::Heap;

  void Burst(Heap& heap, std::size_t count = kBurst) {
    this->heaps_->Free(heap, this->heaps_->Allocate(heap, kSmall, count));
  }
  std::uint64_t pool_calls() { return this->heaps_->registry().pool_calls(); }
};

using Variants = testing::Types<Variant<kRelease>, Variant<kHardened>>;
TYPED_TEST_SUITE(BurstsTest, Variants);

TYPED_TEST(BurstsTest, TakeNoLockThatThreadsShareButForTheFirst) {
  auto& heap = this->heaps_->Attach();
  this->Burst(heap);
  this->Burst(heap);
  const std::uint64_t calls = this->pool_calls();
  for (int burst = 0; burst < 20; ++burst) this->Burst(heap);
  EXPECT_EQ(this->pool_calls(), calls);
  this->heaps_->CheckInvariants();
}

// A program that ends frees what it never allocates again.
TYPED_TEST(BurstsTest, TakeFewMagazinesTheFirstTime) {
  auto& heap = this->heaps_->Attach();
  this->Burst(heap, /*count=*/1);
  const std::size_t before = this->heaps_->HeapMetadataBytes();
  this->Burst(heap, kLongBurst);
  EXPECT_LT(this->heaps_->HeapMetadataBytes(), before + 320 * kKiB);
  this->Burst(heap, kLongBurst);
  EXPECT_GE(this->heaps_->HeapMetadataBytes(), before + 384 * kKiB);
  this->heaps_->CheckInvariants();
}

TYPED_TEST(BurstsTest, OfSeveralThreadsDoNotMeet) {
  constexpr int kThreads = 4;
  std::vector<typename TestFixture::Heap*> heaps;
  for (int t = 0; t < kThreads; ++t) {
    heaps.push_back(&this->heaps_->Attach());
    this->Burst(*heaps.back());
    this->Burst(*heaps.back());
  }
  const std::uint64_t calls = this->pool_calls();
  std::vector<std::thread> threads;
  threads.reserve(heaps.size());
  for (auto* heap : heaps) {
    threads.emplace_back([this, heap] {
      for (int burst = 0; burst < 20; ++burst) this->Burst(*heap);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(this->pool_calls(), calls);
  this->heaps_->CheckInvariants();
}

TYPED_TEST(BurstsTest, OfBlocksThatAnotherThreadFreesTakeNoneEither) {
  auto& owner = this->heaps_->Attach();
  auto& other = this->heaps_->Attach();
  std::uint64_t calls = 0;
  for (int burst = 0; burst < 20; ++burst) {
    this->heaps_->Free(other, this->heaps_->Allocate(owner, kSmall, kBurst));
    if (burst == 1) calls = this->pool_calls();
  }
  EXPECT_EQ(this->pool_calls(), calls);
  this->heaps_->CheckInvariants();
}

// 512 KiB: 112 magazines of the class.
TYPED_TEST(BurstsTest, StayWithinTheBudget) {
  for (const std::uint64_t depot_bytes :
       {std::uint64_t{0}, 20 * kKiB, 512 * kKiB}) {
    this->Start(depot_bytes);
    auto& heap = this->heaps_->Attach();
    for (int burst = 0; burst < 3; ++burst) {
      const std::vector<void*> blocks =
          this->heaps_->Allocate(heap, kSmall, kBurst);
      this->heaps_->CheckInvariants();
      this->heaps_->Free(heap, blocks);
      this->heaps_->CheckInvariants();
    }
  }
}

// Each block that magazines and depot hold is in another slab.
TYPED_TEST(BurstsTest, FreedInNoOrderLeaveFewSlabs) {
  this->Start(/*depot_bytes=*/kMiB);
  auto& heap = this->heaps_->Attach();
  std::vector<void*> blocks =
      this->heaps_->Allocate(heap, kSmall, 3000 * kMagazineSlots);
  std::mt19937 random(1);
  std::shuffle(blocks.begin(), blocks.end(), random);
  const std::uint64_t before = this->heaps_->GrantedBytes();
  this->heaps_->Free(heap, blocks);
  EXPECT_LT(this->heaps_->GrantedBytes(), before / 2);
  this->heaps_->CheckInvariants();
  // The next burst is one like others.
  this->Burst(heap);
  this->Burst(heap);
  const std::uint64_t calls = this->pool_calls();
  this->Burst(heap);
  EXPECT_EQ(this->pool_calls(), calls);
}

TYPED_TEST(BurstsTest, ThatAreOverGiveTheirMagazinesBack) {
  auto& heap = this->heaps_->Attach();
  this->Burst(heap, kLongBurst);
  for (int i = 0; i < 4; ++i) {
    this->Burst(heap, /*count=*/10);
    heap.TryTrim();
  }
  const std::size_t mapped_bytes = this->heaps_->HeapMetadataBytes();
  auto& other = this->heaps_->Attach();
  this->Burst(other, kLongBurst);
  EXPECT_LT(this->heaps_->HeapMetadataBytes(), mapped_bytes + kSlackBytes);
  this->heaps_->CheckInvariants();
}

// What is left behind is what the next thread takes over: little.
TYPED_TEST(BurstsTest, OfThreadsThatExitLeaveNoMagazinesBehind) {
  auto& first = this->heaps_->Attach();
  const std::vector<void*> blocks =
      this->heaps_->Allocate(first, kSmall, kLongBurst);
  this->heaps_->Free(first, blocks);
  const std::vector<void*> kept =
      this->heaps_->Allocate(first, kSmall, kLongBurst);
  this->heaps_->registry().Abandon(first);
  this->heaps_->CheckInvariants();
  const std::size_t mapped_bytes = this->heaps_->HeapMetadataBytes();
  auto& next = this->heaps_->Attach();
  auto& other = this->heaps_->Attach();
  EXPECT_EQ(&next, &first);
  this->Burst(other, kLongBurst);
  EXPECT_LT(this->heaps_->HeapMetadataBytes(), mapped_bytes + kSlackBytes);
  this->heaps_->Free(next, kept);
  this->heaps_->CheckInvariants();
}

TYPED_TEST(BurstsTest, AreNoMatterToHeapsWithoutThem) {
  constexpr int kHeaps = 100;
  for (int i = 0; i < kHeaps; ++i) {
    auto& heap = this->heaps_->Attach();
    for (const std::size_t bytes : {16U, 64U, 256U, 1024U}) {
      this->heaps_->Allocate(heap, ClassOf(bytes));
    }
  }
  // One magazine for each class.
  EXPECT_EQ(this->pool_calls(), 4U * kHeaps);
}

}  // namespace
}  // namespace hakmem
