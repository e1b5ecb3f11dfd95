// Threads: their blocks outlive them, and they may go on without a heap.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr int kSteps = kThreadSanitizer ? 5'000 : 30'000;
constexpr std::size_t kSizes[] = {16, 900, 5000, 60'000, 200'000, 3 * kMiB};

template <typename V>
class AllocatorThreadsTest : public testing::Test {
 protected:
  using Heap = typename TestAllocator<V::kConfig>::Heap;

  void ExpectNothingLeft() {
    Heap* last = test_.NewThread();
    allocator_.upkeep().Purge(last);
    EXPECT_EQ(allocator_.upkeep().Snapshot().granted_bytes, 0U);
    EXPECT_EQ(allocator_.upkeep().Snapshot().failures, 0U);
    allocator_.CheckInvariants();
  }

  // One thread's life: what it allocates is freed by whoever comes across it.
  void Live(unsigned seed, int steps) {
    std::mt19937 random(seed);
    Heap* self = test_.NewThread();
    for (int step = 0; step < steps; ++step) {
      const std::size_t size =
          1 + random() % (random() % 64 == 0 ? 150'000 : 2000);
      auto* block = static_cast<unsigned char*>(
          allocator_.Allocate(self, size + sizeof(size)));
      ASSERT_NE(block, nullptr);
      std::memcpy(block, &size, sizeof(size));
      std::memset(block + sizeof(size), static_cast<int>(size), size);
      // acq_rel: who takes the block sees what was written into it.
      block = slots_[random() % slots_.size()].exchange(
          block, std::memory_order_acq_rel);
      if (block != nullptr) CheckAndFree(self, block, random());
    }
    allocator_.Detach(self);
  }
  void CheckAndFree(Heap*& self, unsigned char* block, unsigned chance) {
    std::size_t size = 0;
    std::memcpy(&size, block, sizeof(size));
    EXPECT_EQ(block[sizeof(size)], static_cast<unsigned char>(size));
    EXPECT_EQ(block[sizeof(size) + size - 1], static_cast<unsigned char>(size));
    if (chance % 8 == 0) {
      void* moved = allocator_.Reallocate(self, block, sizeof(size) + 1);
      ASSERT_NE(moved, nullptr);
      EXPECT_EQ(std::memcmp(moved, &size, sizeof(size)), 0);
      allocator_.FreeSized(self, moved, sizeof(size) + 1, kMinAlignmentBytes);
    } else if (chance % 2 == 0) {
      allocator_.FreeSized(self, block, sizeof(size) + size,
                           kMinAlignmentBytes);
    } else {
      allocator_.Free(self, block);
    }
  }
  void FreeSlots() {
    Heap* self = test_.NewThread();
    for (std::atomic<unsigned char*>& slot : slots_) {
      if (slot.load() != nullptr) CheckAndFree(self, slot.exchange(nullptr), 1);
    }
    allocator_.Detach(self);
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  std::array<std::atomic<unsigned char*>, 500> slots_ = {};
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorThreadsTest, Variants);

TYPED_TEST(AllocatorThreadsTest, ADetachedThreadGoesOnWithoutAHeap) {
  auto* self = this->test_.NewThread();
  auto* other = this->test_.NewThread();
  ModelHeap model;
  const auto allocate = [&](auto*& thread, std::size_t size) {
    void* block = this->allocator_.Allocate(thread, size);
    ASSERT_NE(block, nullptr);
    model.Add(block, size, 16, this->allocator_.UsableSize(thread, block));
  };
  for (const std::size_t size : kSizes) {
    allocate(self, size);
    allocate(other, size);
  }
  this->allocator_.Detach(self);
  this->allocator_.Detach(self);
  for (const std::size_t size : kSizes) allocate(self, size);
  for (const std::size_t size : kSizes) {
    void* block = this->allocator_.AllocateZeroed(self, 1, size);
    ModelHeap::CheckZero(block, size);
    void* moved = this->allocator_.Reallocate(self, block, size * 2);
    ASSERT_NE(moved, nullptr);
    this->allocator_.Free(self, moved);
    block = this->allocator_.AllocateAligned(self, 4096, size);
    this->allocator_.FreeSized(self, block, size, 4096);
  }
  // Its own blocks of before, another thread's, and new ones.
  while (!model.empty()) {
    void* block = model.Pick(model.count() / 2);
    model.Remove(block);
    this->allocator_.Free(self, block);
  }
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().heaps_created, 2U);
  this->allocator_.Detach(other);
  this->ExpectNothingLeft();
}

TYPED_TEST(AllocatorThreadsTest, AThreadMayDetachBeforeAnyHeapExists) {
  auto* self = this->test_.NewThread();
  this->allocator_.Detach(self);
  for (const std::size_t size : kSizes) {
    void* block = this->allocator_.Allocate(self, size);
    ASSERT_NE(block, nullptr);
    this->allocator_.Free(self, block);
  }
  this->ExpectNothingLeft();
}

// Statistics may be written by a signal handler, which asks ACE's lock whether
// it has interrupted the holder.
TYPED_TEST(AllocatorThreadsTest, LocksKnowAThreadThatOnlyFreesOrResizes) {
  for (const std::size_t size : kSizes) {
    auto* self = this->test_.NewThread();
    void* block = this->allocator_.Allocate(self, size);
    const auto by_other = [&](const auto& call) {
      std::thread([&] {
        auto* other = this->test_.NewThread();
        call(other);
        const std::uint64_t name = FutexLock::Self();
        FutexLock::Identify();
        EXPECT_EQ(name, FutexLock::Self());
        this->allocator_.Detach(other);
      }).join();
    };
    if (size > kMiB) {
      by_other([&](auto* other) {
        block = this->allocator_.Reallocate(other, block, size / 3);
      });
    }
    by_other([&](auto* other) { this->allocator_.Free(other, block); });
    this->allocator_.Detach(self);
  }
}

TYPED_TEST(AllocatorThreadsTest, BlocksOutliveTheirThread) {
  ModelHeap model;
  for (int life = 0; life < 20; ++life) {
    auto* self = this->test_.NewThread();
    for (const std::size_t size : kSizes) {
      void* block = this->allocator_.Allocate(self, size);
      model.Add(block, size, 16, this->allocator_.UsableSize(self, block));
    }
    this->allocator_.Detach(self);
  }
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().heaps_created, 1U);
  model.CheckAll();
  auto* last = this->test_.NewThread();
  while (!model.empty()) {
    void* block = model.Pick(0);
    model.Remove(block);
    this->allocator_.Free(last, block);
  }
  this->allocator_.Detach(last);
  this->ExpectNothingLeft();
}

TYPED_TEST(AllocatorThreadsTest, ManyThreadsShareBlocks) {
  std::vector<std::thread> lanes;
  for (unsigned lane = 0; lane < 4; ++lane) {
    lanes.emplace_back([this, lane] {
      this->Live(lane, kSteps);
      for (unsigned life = 1; life < 20; ++life) {
        this->Live(lane * 100 + life, kSteps / 100);
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  this->FreeSlots();
  this->ExpectNothingLeft();
}

TYPED_TEST(AllocatorThreadsTest, LeavesNothingOnTheRealKernel) {
  std::vector<Region::Window> windows;
  {
    RealTestAllocator<TypeParam::kConfig> real;
    auto* self = TestedAllocator<TypeParam::kConfig>::NoHeap();
    for (const std::size_t size : {std::size_t{100}, 5 * kMiB, 300 * kMiB}) {
      ASSERT_NE(real.allocator->Allocate(self, size), nullptr);
    }
    const Region::Window* all = real.allocator->ace().region().windows();
    windows.assign(all, all + Region::kWindows);
  }
  LinuxVirtualMemory memory;
  for (const Region::Window& window : windows) {
    if (window.bytes == 0) continue;
    EXPECT_FALSE(memory.IsTaken(window.begin, window.bytes));
  }
}

// A real fork while others allocate; the child uses all routes and ends. On the
// real kernel, because a fork does not wait for the fake's own lock.
TYPED_TEST(AllocatorThreadsTest, TheChildOfAForkAllocates) {
  RealTestAllocator<TypeParam::kConfig> real;
  auto& allocator = *real.allocator;
  auto* self = TestAllocator<TypeParam::kConfig>::NewThread();
  void* mine = allocator.Allocate(self, 1000);
  std::memset(mine, 7, 1000);
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (unsigned seed = 0; seed < 2; ++seed) {
    others.emplace_back([&allocator, &stop, seed] {
      std::mt19937 random(seed);
      auto* own = TestAllocator<TypeParam::kConfig>::NewThread();
      std::vector<void*> blocks(100);
      while (!stop.load()) {
        void*& block = blocks[random() % blocks.size()];
        allocator.Free(own, block);
        block = allocator.Allocate(own, kSizes[random() % 5]);
      }
      for (void* block : blocks) allocator.Free(own, block);
      allocator.Detach(own);
    });
  }
  for (int i = 0; i < 20; ++i) {
    allocator.PrepareFork();
    // What a handler of fork does that was registered before the allocator's.
    for (const std::size_t size : kSizes) {
      void* blocks[70];
      for (void*& block : blocks) block = allocator.Allocate(self, size);
      for (void* block : blocks) allocator.Free(self, block);
    }
    const pid_t child = fork();
    if (child == 0) {
      allocator.ChildAfterFork(self);
      bool served = static_cast<char*>(mine)[999] == 7;
      allocator.Free(self, mine);
      for (const std::size_t size : kSizes) {
        void* block = allocator.AllocateZeroed(self, 1, size);
        served = served && block != nullptr;
        allocator.Free(self, block);
      }
      allocator.CheckInvariants();
      _exit(served ? 0 : 1);
    }
    allocator.ParentAfterFork();
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& other : others) other.join();
  allocator.Free(self, mine);
  allocator.Detach(self);
  allocator.upkeep().Purge(self);
  EXPECT_EQ(allocator.upkeep().Snapshot().granted_bytes, 0U);
  allocator.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
