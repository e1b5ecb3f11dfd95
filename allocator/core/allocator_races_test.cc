// Races of the program's own making: a block that one thread frees while
// another changes its size.

#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>

#include "allocator/ace/ace.h"
#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr int kRounds = kThreadSanitizer ? 50 : 200;

template <typename V>
class AllocatorRacesTest : public testing::Test {
 protected:
  using Heap = typename TestAllocator<V::kConfig>::Heap;

  AllocatorRacesTest() { SetOnMisuse(OnMisuse::kLog); }
  ~AllocatorRacesTest() override { SetOnMisuse(OnMisuse::kAbort); }

  // One thread frees what the other reallocates, at the same time. Whoever
  // comes second is told, and nothing is lost.
  void Race(std::size_t from_bytes, std::size_t to_bytes) {
    std::atomic<void*> shared{nullptr};
    std::atomic<int> freed{0};
    std::thread other([&] {
      Heap* self = test_.NewThread();
      for (int round = 0; round < kRounds; ++round) {
        void* block = nullptr;
        // acquire, release: pair with those below.
        while ((block = shared.exchange(nullptr, std::memory_order_acquire)) ==
               nullptr) {
          std::this_thread::yield();
        }
        allocator_.Free(self, block);
        freed.store(round + 1, std::memory_order_release);
      }
      allocator_.Detach(self);
    });
    for (int round = 0; round < kRounds; ++round) {
      void* block = allocator_.Allocate(self_, from_bytes);
      ASSERT_NE(block, nullptr);
      std::memset(block, 1, 100);
      const std::uint64_t before = MisuseCount();
      shared.store(block, std::memory_order_release);
      void* moved = allocator_.Reallocate(self_, block, to_bytes);
      while (freed.load(std::memory_order_acquire) <= round) {
        std::this_thread::yield();
      }
      const std::uint64_t misuses = MisuseCount() - before;
      ASSERT_LE(misuses, 1u);
      // Without a misuse the realloc came first, and left the block where it
      // was; or the free did, and the realloc saw nothing of it.
      if (misuses == 0) {
        ASSERT_EQ(moved, block);
      } else if (moved != nullptr) {
        allocator_.Free(self_, moved);
      }
      ASSERT_EQ(MisuseCount() - before, misuses);
      if (round % 20 == 0) allocator_.CheckInvariants();
    }
    other.join();
    allocator_.CheckInvariants();
    allocator_.upkeep().Purge(self_);
    EXPECT_EQ(allocator_.upkeep().Snapshot().granted_bytes, 0u);
  }

  TestAllocator<V::kConfig> test_;
  Allocator<V::kConfig>& allocator_ = *test_.allocator;
  Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorRacesTest, Variants);

TYPED_TEST(AllocatorRacesTest, SpansThatGrow) { this->Race(100'000, 400'000); }

TYPED_TEST(AllocatorRacesTest, SpansThatShrink) {
  this->Race(400'000, 100'000);
}

TYPED_TEST(AllocatorRacesTest, SpansThatStayAsLong) {
  this->Race(400'000, 250'000);
}

TYPED_TEST(AllocatorRacesTest, SpansThatBecomePoolBlocks) {
  this->Race(200'000, 20'000);
}

TYPED_TEST(AllocatorRacesTest, SpansWhosePagesAreMoved) {
  this->Race(5 * kMiB, 9 * kMiB);
}

TYPED_TEST(AllocatorRacesTest, HugeBlocksThatGrow) {
  this->Race(kMaxSpanBytes + kMiB, 2 * kMaxSpanBytes);
}

TYPED_TEST(AllocatorRacesTest, HugeBlocksThatBecomePoolBlocks) {
  this->Race(kMaxSpanBytes + kMiB, 20'000);
}

}  // namespace
}  // namespace hakmem
