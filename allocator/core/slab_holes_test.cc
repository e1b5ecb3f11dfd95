// What lies between live blocks goes back, by Purge and by itself.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Tiny and Pool, less and more than a page, and in slabs of four units.
constexpr std::size_t kSizes[] = {200, 1000, 3000, 9000, 40'000};
constexpr std::size_t kTotalBytes = 4 * kMiB;
constexpr std::size_t kKeepEach = 100;

template <typename V>
class SlabHolesTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;

  // Without the heap profile, whose sampled blocks lie elsewhere.
  static HeapOptions NoProfile() {
    HeapOptions options;
    options.profile_bytes = 0;
    return options;
  }

  explicit SlabHolesTest(const HeapOptions& options = NoProfile())
      : test_(options) {}
  ~SlabHolesTest() override {
    for (char* block : kept_) Free(block);
    allocator_.CheckInvariants();
  }

  char* Allocate(std::size_t size) {
    auto* const block = static_cast<char*>(allocator_.Allocate(self_, size));
    EXPECT_NE(block, nullptr);
    return block;
  }
  void Free(void* block) { allocator_.Free(self_, block); }
  std::size_t Purge() { return allocator_.upkeep().Purge(self_); }
  // Half a decay delay, and what the helper thread does then.
  void Interval() {
    test_.memory.AdvanceMs(250);
    allocator_.upkeep().Maintain();
  }
  static unsigned char Fill(std::size_t i) {
    return static_cast<unsigned char>(i * 37 + 1);
  }

  // Of many blocks, one in so many lives on.
  void MakeHoles(std::size_t size, std::size_t keep_each = kKeepEach) {
    size_ = size;
    std::vector<char*> freed;
    for (std::size_t i = 0; i < kTotalBytes / size; ++i) {
      char* const block = Allocate(size);
      std::memset(block, Fill(kept_.size()), size);
      pages_.insert(RoundDown<Address>(reinterpret_cast<Address>(block),
                                       test_.memory.PageBytes()));
      (i % keep_each == 0 ? kept_ : freed).push_back(block);
    }
    for (char* block : freed) Free(block);
    // What magazines hold is back in the slabs, and what is whole with ACE.
    allocator_.upkeep().Reclaim(self_);
  }
  void ExpectKeptBlocks() {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      EXPECT_EQ(kept_[i][0], static_cast<char>(Fill(i)));
      EXPECT_EQ(std::memcmp(kept_[i], kept_[i] + 1, size_ - 1), 0);
    }
  }
  // Pages that a live block lies on.
  std::size_t KeptPages() {
    const std::size_t page_bytes = test_.memory.PageBytes();
    std::set<std::size_t> pages;
    for (const char* block : kept_) {
      const auto begin = reinterpret_cast<Address>(block);
      for (Address at = RoundDown<Address>(begin, page_bytes);
           at < begin + size_; at += page_bytes) {
        pages.insert(at);
      }
    }
    return pages.size();
  }
  bool IsResident(const char* at) {
    unsigned char resident = 1;
    const auto page = RoundDown<Address>(reinterpret_cast<Address>(at),
                                         test_.memory.PageBytes());
    EXPECT_TRUE(
        test_.memory.FindResident(page, test_.memory.PageBytes(), &resident)
            .ok());
    return resident != 0;
  }

  Test test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename Test::Heap*& self_ = test_.self;
  std::size_t size_ = 0;
  std::vector<char*> kept_;
  std::set<Address> pages_;  // of blocks, live or freed
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(SlabHolesTest, Variants);

TYPED_TEST(SlabHolesTest, GoBackAndLiveBlocksStay) {
  for (const std::size_t size : kSizes) {
    this->MakeHoles(size);
    this->ExpectKeptBlocks();
    // A page in memory for each that holds a live block, and not many more:
    // blocks in magazines or at rest.
    const std::size_t page_bytes = this->test_.memory.PageBytes();
    const std::size_t kept_bytes = this->KeptPages() * page_bytes;
    const std::size_t purged_bytes = this->Purge();
    if (kept_bytes < kTotalBytes / 2) {
      EXPECT_GE(purged_bytes, kTotalBytes / 4) << size;
    }
    this->ExpectKeptBlocks();
    EXPECT_EQ(this->Purge(), 0U) << size;
    for (char* block : this->kept_) this->Free(block);
    this->kept_.clear();
    this->Purge();
  }
}

TYPED_TEST(SlabHolesTest, AreServedAgain) {
  constexpr std::size_t kSize = 1000;
  this->MakeHoles(kSize);
  this->Purge();
  std::vector<char*> again;
  for (std::size_t i = 0; i < kTotalBytes / kSize; ++i) {
    char* const block = static_cast<char*>(
        this->allocator_.AllocateZeroed(this->self_, 1, kSize));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(FirstNonZero(block, kSize), kSize);
    std::memset(block, 0xee, kSize);
    again.push_back(block);
  }
  this->ExpectKeptBlocks();
  this->allocator_.CheckInvariants();
  for (char* block : again) this->Free(block);
}

// Of all heaps that the child has inherited, its own among them.
TYPED_TEST(SlabHolesTest, GoBackInTheChildOfAProcessWithThreads) {
  typename TestFixture::Test::Heap* other = TestFixture::Test::NewThread();
  ASSERT_NE(this->allocator_.Allocate(other, 100), nullptr);
  this->MakeHoles(3000);
  this->allocator_.ace().PurgeAll();  // what is whole
  this->allocator_.PrepareFork();
  this->allocator_.ChildAfterFork(this->self_);
  EXPECT_GE(this->Purge(), this->kept_.size() * kUnitBytes / 2);
  this->ExpectKeptBlocks();
  EXPECT_EQ(this->Purge(), 0U);
  for (char* block : this->kept_) this->Free(block);
  this->kept_.clear();
  this->allocator_.Detach(this->self_);
}

TYPED_TEST(SlabHolesTest, StayWhereTheKernelRefuses) {
  this->MakeHoles(3000);
  this->test_.memory.RefuseCall(
      1, EINVAL, FakeVirtualMemory::Refuse::kFromThenOn, VmCall::kPurge);
  EXPECT_EQ(this->Purge(), 0U);
  this->test_.memory.RefuseNothing();
  EXPECT_GE(this->Purge(), kTotalBytes / 4);
  this->ExpectKeptBlocks();
}

// As where a program has locked some pages of its own.
TYPED_TEST(SlabHolesTest, OneRefusalIsOfOneSlab) {
  this->MakeHoles(3000);
  for (int i = 0; i < 2; ++i) this->Interval();
  this->test_.memory.RefuseCall(1, EINVAL, FakeVirtualMemory::Refuse::kOnce,
                                VmCall::kPurge);
  EXPECT_GE(this->Purge(), this->kept_.size() * kUnitBytes / 2);
  EXPECT_GT(this->Purge(), 0U);
}

// Ticks of the helper thread, so many decay delays long.
// As by a timer.
TYPED_TEST(SlabHolesTest, AreAskedForWhereAnythingHasChanged) {
  constexpr std::size_t kSize = 200;
  this->MakeHoles(kSize, /*keep_each=*/2);
  const auto count_calls = [&] {
    const auto count = [&] {
      return this->test_.memory.calls(VmCall::kNone) +
             this->test_.memory.resident_looks();
    };
    const std::uint64_t before = count();
    this->Purge();
    return count() - before;
  };
  // No hole has a whole page.
  EXPECT_LT(count_calls(), 10U);
  for (std::size_t i = 0; i < this->kept_.size(); ++i) {
    if (i / 64 % 2 == 0) this->Free(std::exchange(this->kept_[i], nullptr));
  }
  std::erase(this->kept_, nullptr);
  // Each slab has some; hardened has put some aside.
  EXPECT_GT(count_calls(), 2 * kTotalBytes / kSuperSlabBytes);
  EXPECT_LT(count_calls(), 10U);
  this->Free(this->kept_.back());
  this->kept_.pop_back();
  EXPECT_LT(count_calls(), 10U);
}

TYPED_TEST(SlabHolesTest, GoBackByThemselvesWhenTheyAreIdle) {
  this->MakeHoles(3000);
  const auto resident_bytes = [this] {
    const std::size_t page_bytes = this->test_.memory.PageBytes();
    std::size_t bytes = 0;
    for (const Address page : this->pages_) {
      if (!this->test_.memory.IsMapped(page, page_bytes)) continue;
      const bool resident =
          this->IsResident(reinterpret_cast<const char*>(page));
      bytes += resident ? page_bytes : 0;
    }
    return bytes;
  };
  // What is whole goes first.
  this->test_.memory.AdvanceMs(3'600'000);
  for (int i = 0; i < 2; ++i) this->Interval();
  // As in a process that was restored elsewhere.
  this->test_.memory.SetNowMs(1);
  const std::size_t before = resident_bytes();
  EXPECT_GE(before, this->kept_.size() * kUnitBytes / 2);
  constexpr std::uint64_t kMostCalls = 256 + 64;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t calls = this->test_.memory.calls(VmCall::kPurge);
    this->Interval();
    EXPECT_LE(this->test_.memory.calls(VmCall::kPurge) - calls, kMostCalls);
  }
  EXPECT_LE(resident_bytes(), before / 2);
  this->ExpectKeptBlocks();
  // What went back is not asked about again.
  const std::uint64_t asked = this->test_.memory.resident_looks();
  for (int i = 0; i < 10; ++i) this->Interval();
  EXPECT_EQ(this->test_.memory.resident_looks(), asked);
}

// Many slabs have nothing to give.
TYPED_TEST(SlabHolesTest, AreAskedForByAFewCallsAtOnce) {
  constexpr std::size_t kSlabs = 600;
  constexpr std::size_t kSize = 3000;
  std::vector<char*> freed;
  for (std::size_t i = 0; i < kSlabs * kUnitBytes / kSize; ++i) {
    (i % 15 == 0 ? this->kept_ : freed).push_back(this->Allocate(kSize));
  }
  for (char* block : freed) this->Free(block);
  this->allocator_.upkeep().Reclaim(this->self_);
  const auto asked = [this] { return this->test_.memory.resident_looks(); };
  const std::uint64_t first = asked();
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = asked();
    this->Interval();
    EXPECT_LE(asked() - before, 256U);
  }
  EXPECT_GE(asked() - first, kSlabs / 2);
}

TYPED_TEST(SlabHolesTest, AreAskedForOnceWhereMemoryIsLocked) {
  this->MakeHoles(3000);
  this->test_.memory.RefuseCall(
      1, EINVAL, FakeVirtualMemory::Refuse::kFromThenOn, VmCall::kPurge);
  for (int i = 0; i < 20; ++i) this->Interval();
  const std::uint64_t calls = this->test_.memory.calls(VmCall::kPurge);
  constexpr int kIntervals = 20;
  for (int i = 0; i < kIntervals; ++i) this->Interval();
  // Each tries units that are free, and parts of huge pages.
  EXPECT_LE(this->test_.memory.calls(VmCall::kPurge), calls + 2 * kIntervals);
  this->test_.memory.RefuseNothing();
}

// With huge pages for all.
template <typename V>
class SlabHolesHugeTest : public SlabHolesTest<V> {
 protected:
  static HeapOptions Huge() {
    HeapOptions options = SlabHolesTest<V>::NoProfile();
    options.huge_pages = static_cast<std::uint64_t>(HugePages::kOn);
    return options;
  }
  SlabHolesHugeTest() : SlabHolesTest<V>(Huge()) {}

  // How many of the blocks that are kept lie in SuperSlabs with the wish.
  std::size_t CountHuge() {
    std::size_t count = 0;
    for (const char* block : this->kept_) {
      const auto at = reinterpret_cast<Address>(block);
      count += this->test_.memory.IsHuge(
                   RoundDown<Address>(at, kSuperSlabBytes), kSuperSlabBytes)
                   ? 1
                   : 0;
    }
    return count;
  }
};
TYPED_TEST_SUITE(SlabHolesHugeTest, Variants);

TYPED_TEST(SlabHolesHugeTest, HaveNoHugePageWhileAnythingIsUsed) {
  constexpr std::size_t kSize = 3000;
  this->MakeHoles(kSize, /*keep_each=*/15);
  EXPECT_EQ(this->CountHuge(), this->kept_.size());
  this->Purge();
  EXPECT_EQ(this->CountHuge(), 0U);
  // Some slabs go, and others come in their places.
  std::vector<char*> live;
  for (std::size_t i = 0; i < this->kept_.size(); ++i) {
    if (i % 32 < 4) {
      this->Free(this->kept_[i]);
    } else {
      live.push_back(this->kept_[i]);
    }
  }
  this->kept_ = live;
  this->allocator_.upkeep().Reclaim(this->self_);
  std::vector<char*> others(2 * kTotalBytes / 5000);
  for (char*& block : others) block = this->Allocate(5000);
  EXPECT_EQ(this->CountHuge(), 0U);
  this->allocator_.CheckInvariants();
  for (char* block : others) this->Free(block);
  for (char* block : live) this->Free(block);
  this->allocator_.upkeep().Reclaim(this->self_);
  this->Purge();
  EXPECT_GT(this->CountHuge(), 0U);
  this->kept_.clear();
}

// A huge page is worth more than a few free pages of it.
TYPED_TEST(SlabHolesHugeTest, GoBackByThemselvesWhereHalfIsIdle) {
  constexpr std::size_t kSize = 3000;
  constexpr std::size_t kBlocks = 3 * kSuperSlabBytes / kSize;
  // Of one slab in eight most is freed, then of seven.
  std::vector<char*> freed[2];
  for (std::size_t i = 0; i < kBlocks; ++i) {
    char* const block = this->Allocate(kSize);
    std::memset(block, 1, kSize);
    const std::size_t slab = reinterpret_cast<Address>(block) / kUnitBytes;
    std::vector<char*>& few_or_many = freed[slab % 8 == 0 ? 0 : 1];
    (i % 15 == 0 ? this->kept_ : few_or_many).push_back(block);
  }
  std::size_t before = this->CountHuge();
  EXPECT_EQ(before, this->kept_.size());
  for (std::vector<char*>& blocks : freed) {
    for (char* block : blocks) this->Free(block);
    this->allocator_.upkeep().Reclaim(this->self_);
    for (int i = 0; i < 20; ++i) this->Interval();
    if (&blocks == &freed[0]) EXPECT_EQ(this->CountHuge(), before);
  }
  EXPECT_LT(this->CountHuge(), before / 2);
}

// Each other block of two pages is in use: as many holes as there can be.
TYPED_TEST(SlabHolesTest, OnePageEachIsFound) {
  constexpr std::size_t kSize = 8192 - 64;
  std::vector<char*> blocks(64);
  for (char*& block : blocks) {
    block = this->Allocate(kSize);
    std::memset(block, 1, kSize);
  }
  for (std::size_t i = 0; i < blocks.size(); i += 2) this->Free(blocks[i]);
  this->Purge();
  std::size_t purged = 0;
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    purged += this->IsResident(blocks[i] + 4096) ? 0 : 1;
  }
  // The others rest, or were put back last.
  EXPECT_GE(purged, blocks.size() / 4);
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    EXPECT_EQ(blocks[i][kSize - 1], 1);
    this->Free(blocks[i]);
  }
}

}  // namespace
}  // namespace hakmem
