// Ace: what is kept in a control group with little memory.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/proc_reader.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kDecayMs = 500;
constexpr std::size_t kFirstLook = 8 * kMiB;

// What the group of the test's process may have, and how often that was asked.
std::uint64_t g_limit_bytes;
unsigned g_looks;
std::function<void()> g_during_look;

class AceMemoryLimitTest : public testing::Test {
 protected:
  AceMemoryLimitTest() {
    g_limit_bytes = 64 * kMiB;
    g_looks = 0;
    HeapOptions options;
    options.decay_ms = kDecayMs;
    options.find_memory_limit = [] {
      ++g_looks;
      if (g_during_look) std::exchange(g_during_look, nullptr)();
      return g_limit_bytes;
    };
    ace_.Start(options);
  }
  ~AceMemoryLimitTest() override { ace_.CheckInvariants(); }

  void Grant(std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kMiB) {
      slabs_.push_back(ace_.GrantSlab(true, {16, 16}).first);
      ASSERT_NE(slabs_.back(), kNoUnit);
    }
  }
  void Release(std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kMiB) {
      ace_.ReleaseSlab(true, {16}, slabs_.back());
      slabs_.pop_back();
    }
  }
  // So that nothing of it is likely to be wanted.
  void HoldForLong() {
    for (int i = 0; i < 2; ++i) {
      memory_.AdvanceMs(kDecayMs / 2);
      EXPECT_TRUE(ace_.TrimIfDue());
    }
  }
  // After half of it was freed, which was held for long.
  std::uint64_t CachedBytesOf(std::size_t bytes) {
    Grant(bytes);
    HoldForLong();
    Release(bytes / 2);
    return ace_.Snapshot().cached_bytes;
  }

  FakeVirtualMemory memory_;
  WholeAce ace_{memory_};
  std::vector<UnitIndex> slabs_;
};

// What is not worth a call is 1 MiB.
TEST_F(AceMemoryLimitTest, KeepsAShareOfLittleMemory) {
  EXPECT_LE(CachedBytesOf(40 * kMiB), g_limit_bytes / 64 + kMiB);
}

TEST_F(AceMemoryLimitTest, KeepsAsEverWhereThereIsMuch) {
  g_limit_bytes = 4 * kGiB;
  EXPECT_GE(CachedBytesOf(40 * kMiB), 3 * kMiB + 40 * kMiB / 16);
}

// Up to an eighth of the limit: 16 MiB.
TEST_F(AceMemoryLimitTest, ASmallHeapIsNotHeldToIt) {
  g_limit_bytes = 128 * kMiB;
  EXPECT_GE(CachedBytesOf(20 * kMiB), 4 * kMiB + 20 * kMiB / 16);
}

TEST_F(AceMemoryLimitTest, WhatComesAndGoesIsKept) {
  Grant(40 * kMiB);
  Release(20 * kMiB);
  Grant(20 * kMiB);
  const std::uint64_t purges = ace_.Snapshot().purge_calls;
  for (int i = 0; i < 10; ++i) {
    Release(20 * kMiB);
    Grant(20 * kMiB);
  }
  EXPECT_EQ(ace_.Snapshot().purge_calls, purges);
}

TEST_F(AceMemoryLimitTest, LooksWhenTheHeapHasDoubled) {
  Grant(kFirstLook - kMiB);
  EXPECT_EQ(g_looks, 0U);
  EXPECT_EQ(ace_.memory_limit().bytes(), kNoLimit);
  Grant(kMiB);
  EXPECT_EQ(g_looks, 1U);
  EXPECT_EQ(ace_.memory_limit().bytes(), 64 * kMiB);
  g_limit_bytes = 32 * kMiB;
  Grant(kFirstLook - kMiB);
  EXPECT_EQ(g_looks, 1U);
  Grant(kMiB);
  EXPECT_EQ(g_looks, 2U);
  EXPECT_EQ(ace_.memory_limit().bytes(), 32 * kMiB);
  Release(kFirstLook);
  Grant(kFirstLook);
  EXPECT_EQ(g_looks, 2U);
}

// A fork while a thread looks, which the child does not have.
TEST_F(AceMemoryLimitTest, AChildLooksForWhoIsGone) {
  g_during_look = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    ace_.LockForFork();
    ace_.ResetLockAfterFork();
    Grant(kMiB);
    EXPECT_EQ(g_looks, 2U);
    EXPECT_EQ(ace_.memory_limit().bytes(), 64 * kMiB);
    Grant(kMiB);
    EXPECT_EQ(g_looks, 2U);
  };
  Grant(kFirstLook);
  EXPECT_EQ(g_looks, 2U);
}

TEST_F(AceMemoryLimitTest, AThreadKeepsAShare) {
  Grant(kFirstLook);
  EXPECT_EQ(ace_.memory_limit().MostOfThread(), g_limit_bytes / 128);
}

// Pages of 2 MiB, of which little may be in use.
TEST_F(AceMemoryLimitTest, HasHugePagesWhereThereIsMuchMemory) {
  const Zone& fine = ace_.region().fine();
  const auto grow = [&](std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kMiB) {
      Grant(kMiB);
      FillContent(fine.UnitAddress(slabs_.back()), kMiB, 1);
    }
    return memory_.IsHuge(fine.FrameAddress(fine.frame_count() - 1),
                          kSuperSlabBytes);
  };
  g_limit_bytes = 512 * kMiB - 1;
  EXPECT_FALSE(grow(24 * kMiB));
  g_limit_bytes = 512 * kMiB;
  EXPECT_TRUE(grow(24 * kMiB));
}

}  // namespace
}  // namespace hakmem
