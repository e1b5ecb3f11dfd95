// Heaps under many threads: everything is freed by whoever comes across it.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/config/config.h"
#include "allocator/heap/test_heaps.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr int kSteps = kThreadSanitizer ? 20'000 : 100'000;

template <typename V>
class HeapThreadsTest : public testing::Test {
 protected:
  using Heaps = TestHeaps<V::kConfig>;

  // The class and where the block is, at both its ends.
  static void Sign(void* block, SizeClass size_class) {
    const std::uint64_t word = reinterpret_cast<Address>(block) + size_class;
    std::memcpy(block, &word, sizeof(word));
    std::memcpy(static_cast<char*>(block) + ClassBytes(size_class) - 8, &word,
                sizeof(word));
  }
  void CheckAndFree(typename Heaps::Heap& heap, void* block) {
    std::uint64_t word = 0;
    std::memcpy(&word, block, sizeof(word));
    const auto size_class =
        static_cast<SizeClass>(word - reinterpret_cast<Address>(block));
    EXPECT_LT(size_class, kClassCount);
    std::uint64_t end = 0;
    std::memcpy(&end, static_cast<char*>(block) + ClassBytes(size_class) - 8,
                sizeof(end));
    EXPECT_EQ(word, end);
    heaps_.Free(heap, block);
  }

  // One thread's life: allocates into shared slots and frees what it finds.
  void Live(unsigned seed, int steps) {
    std::mt19937 random(seed);
    auto& heap = heaps_.Attach();
    for (int step = 0; step < steps; ++step) {
      const auto size_class = static_cast<SizeClass>(
          random() % 16 == 0 ? random() % kClassCount : random() % 12);
      void* block = heaps_.Allocate(heap, size_class);
      ASSERT_NE(block, nullptr);
      Sign(block, size_class);
      // acq_rel: who takes the block sees what was written into it.
      block = slots_[random() % slots_.size()].exchange(
          block, std::memory_order_acq_rel);
      if (block != nullptr) CheckAndFree(heap, block);
    }
    heaps_.registry().Abandon(heap);
  }
  void ExpectNothingLeft() {
    auto& heap = heaps_.Attach();
    for (std::atomic<void*>& slot : slots_) {
      if (slot.load() != nullptr) CheckAndFree(heap, slot.exchange(nullptr));
    }
    heap.Flush();
    heaps_.registry().Reclaim();  // the heaps without a thread
    heaps_.CheckInvariants();
    EXPECT_EQ(heaps_.GrantedBytes(), 0U);
  }

  Heaps heaps_;
  std::array<std::atomic<void*>, 2000> slots_ = {};
};

TYPED_TEST_SUITE(HeapThreadsTest, ReleaseAndDebug);

TYPED_TEST(HeapThreadsTest, NothingIsLostAmongLongLivedThreads) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] { this->Live(seed, kSteps); });
  }
  for (std::thread& thread : threads) thread.join();
  this->ExpectNothingLeft();
}

TYPED_TEST(HeapThreadsTest, NothingIsLostWhenThreadsComeAndGo) {
  std::vector<std::thread> lanes;
  for (unsigned lane = 0; lane < 4; ++lane) {
    lanes.emplace_back([this, lane] {
      for (unsigned life = 0; life < 100; ++life) {
        this->Live(lane * 1000 + life, kSteps / 200);
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_LE(this->heaps_.registry().count(), 4U);
  this->ExpectNothingLeft();
}

// The locks that fork takes can be had while others allocate.
TYPED_TEST(HeapThreadsTest, ForkMayPrepareAtAnyMoment) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([this, seed, &stop] {
      for (unsigned life = 0; !stop.load(); ++life) {
        this->Live(seed * 1000 + life, 500);
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    this->heaps_.registry().PrepareFork();
    this->heaps_.registry().ParentAfterFork();
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  this->ExpectNothingLeft();
}

}  // namespace
}  // namespace hakmem
