// The check of the whole heap, and the checks after slow paths.

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/heap_check.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/process/test_waits.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSizes[] = {1,      40,      1000,     5000,
                                  60'000, 200'000, 3 * kMiB, 300 * kMiB};

template <typename V>
class AllocatorCheckTest : public testing::Test {
 protected:
  char* Allocate(std::size_t size) {
    return static_cast<char*>(allocator_.Allocate(test_.self, size));
  }
  std::size_t Check() { return allocator_.CheckHeap(test_.self); }
  // As the helper thread looks, until all of a small heap has been looked at.
  std::size_t CheckBitByBit() {
    HeapCheckCursor place;
    std::size_t damaged = 0;
    do {
      damaged = allocator_.CheckBlocks(nullptr, &place);
    } while (damaged == 0 && (place.part != 0 || place.unit != 0));
    return damaged;
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
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
  EXPECT_EQ(this->CheckBitByBit(), 0U);
  for (char* block : blocks) this->allocator_.Free(this->test_.self, block);
  EXPECT_EQ(this->Check(), 0U);
  EXPECT_EQ(this->CheckBitByBit(), 0U);
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

// One byte before a block is the last one of the block that lies there.
TYPED_TEST(AllocatorDamageTest, FindsAByteBeforeABlock) {
  std::vector<char*> blocks(100);
  for (char*& block : blocks) block = this->Allocate(8);
  std::sort(blocks.begin(), blocks.end());
  ASSERT_EQ(blocks[50] - blocks[49], 32);
  EXPECT_DEATH(
      {
        blocks[50][-1] = 'A';
        this->Check();
      },
      "overflow of 0x");
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

// A program that runs over the end of every block that it has is told so before
// the night: the test takes five minutes where each block is waited for.
TYPED_TEST(AllocatorDamageTest, ManyDamagedBlocksAreLookedAtTogether) {
  constexpr std::size_t kSmall = 30'000;
  constexpr std::size_t kLarge = 150;
  for (std::size_t i = 0; i < kSmall + kLarge; ++i) {
    const std::size_t size = i < kSmall ? 40 : 100'000;
    this->Allocate(size)[size] ^= 1;
  }
  SetOnMisuse(OnMisuse::kLog);
  EXPECT_EQ(this->Check(), kSmall + kLarge);
  SetOnMisuse(OnMisuse::kAbort);
}

// A thread that is cancelled meanwhile lets go of the heap first.
TYPED_TEST(AllocatorDamageTest, TheCheckIsNoCancellationPoint) {
  char* const block = this->Allocate(40);
  SetOnMisuse(OnMisuse::kLog);
  block[40] ^= 1;
  struct Call {
    std::function<std::size_t()> check;
    std::size_t damaged = 0;
  } call = {[this] { return this->Check(); }};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* context) -> void* {
                  Call& mine = *static_cast<Call*>(context);
                  pthread_cancel(pthread_self());
                  mine.damaged = mine.check();
                  return nullptr;
                },
                &call),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  SetOnMisuse(OnMisuse::kAbort);
  ASSERT_EQ(call.damaged, 1U);
  block[40] ^= 1;
  this->allocator_.Free(this->test_.self, block);
}

TYPED_TEST(AllocatorDamageTest, IsFoundBitByBit) {
  for (const std::size_t size : kSizes) {
    char* block = this->Allocate(size);
    EXPECT_DEATH(
        {
          block[size] ^= 1;
          this->CheckBitByBit();
        },
        "overflow of 0x[0-9a-f]+ .*\n  in the background check, thread")
        << size;
    this->allocator_.Free(this->test_.self, block);
    if (size > kMaxSpanBytes) continue;
    // Between the places that a malloc would look at.
    EXPECT_DEATH(
        {
          block[size / 2 + size / 31] ^= 1;
          this->CheckBitByBit();
        },
        "write after free of 0x")
        << size;
  }
}

TYPED_TEST(AllocatorDamageTest, ALookBitByBitBringsNoPagesIntoMemory) {
  constexpr std::size_t kPages = kSuperSlabBytes / kPage;
  LinuxVirtualMemory memory;
  const Address frame =
      RoundDown(reinterpret_cast<Address>(this->Allocate(30'000)),
                static_cast<Address>(kSuperSlabBytes));
  const auto resident = [&] {
    unsigned char in_memory[kPages] = {};
    EXPECT_TRUE(memory.FindResident(frame, kSuperSlabBytes, in_memory).ok());
    return std::count(in_memory, in_memory + kPages, 1);
  };
  const auto before = resident();
  EXPECT_EQ(this->CheckBitByBit(), 0U);
  EXPECT_EQ(resident(), before);
  EXPECT_EQ(this->Check(), 0U);
  EXPECT_GT(resident(), before) << "blocks that nobody had are there";
}

TYPED_TEST(AllocatorDamageTest, ALookTakesSoManyUnitsAtMost) {
  for (int i = 0; i < 40; ++i) this->Allocate(kMiB);
  HeapCheckCursor place;
  EXPECT_EQ(this->allocator_.CheckBlocks(nullptr, &place), 0U);
  EXPECT_TRUE(place.part != 0 || place.unit != 0) << "that was not all";
}

TYPED_TEST(AllocatorDamageTest, BitByBitTheFirstDamageIsEnough) {
  SetOnMisuse(OnMisuse::kLog);
  for (int i = 0; i < 3; ++i) this->Allocate(40)[40] ^= 1;
  EXPECT_EQ(this->CheckBitByBit(), 1U);
  EXPECT_EQ(this->Check(), 3U);
  SetOnMisuse(OnMisuse::kAbort);
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

// A thread that is stopped in the middle of an allocation, a free or a realloc,
// by a signal's handler here, by a debugger or by a busy machine elsewhere, has
// left a block half done for as long as it stands.
TYPED_TEST(AllocatorDamageTest, AThreadThatStandsStillHasDamagedNothing) {
  if (kThreadSanitizer) GTEST_SKIP() << "a check reads what others write";
  struct sigaction action = {};
  struct sigaction before = {};
  static const pid_t checker = gettid();
  static std::atomic<int> stopped;
  static std::atomic<int> checked;
  static std::atomic<int> went_on;
  stopped = checked = went_on = 0;
  // Until it has been looked at, or has a lock that is needed for that.
  action.sa_handler = [](int) {
    const int error = errno;
    const int stop = ++stopped;
    AwaitThat(
        [stop] { return checked == stop || SleepsIn(checker, SYS_futex); });
    ++went_on;
    errno = error;
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  SetOnMisuse(OnMisuse::kLog);
  auto* other = this->test_.NewThread();
  std::size_t damaged = 0;
  int stops = 0;
  for (const bool large : {false, true}) {
    std::atomic<bool> done = false;
    std::thread busy([&] {
      for (unsigned i = 0; !done; ++i) {
        const std::size_t size = large ? kSizes[5] : kSizes[i % 4];
        void* block = this->allocator_.Allocate(other, size);
        block = this->allocator_.Reallocate(other, block, size - size / 20);
        this->allocator_.Free(other, block);
      }
    });
    for (int end = stops + 40; stops != end; ++stops) {
      pthread_kill(busy.native_handle(), SIGUSR1);
      while (stopped == stops) std::this_thread::yield();
      damaged += this->Check();
      damaged += this->CheckBitByBit();
      ++checked;
      while (went_on == stops) std::this_thread::yield();
    }
    done = true;
    busy.join();
  }
  SetOnMisuse(OnMisuse::kAbort);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(damaged, 0U);
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
  TestedAllocator<kDebug>& allocator = *test.allocator;
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
      "internal check failed|double free");
}

}  // namespace
}  // namespace hakmem
