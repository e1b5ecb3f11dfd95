#include "allocator/history/stack_depot.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;
using Stack = std::vector<std::uintptr_t>;

class StackDepotTest : public testing::Test {
 protected:
  void Start(std::size_t bytes) {
    depot_.Start(memory_.RegionRange().begin, bytes);
  }
  Stack FramesOf(StackId id) const {
    const auto frames = depot_.Frames(id);
    return {frames.begin(), frames.end()};
  }
  static Stack StackOf(std::size_t seed) {
    Stack stack;
    for (std::size_t i = 0; i < 1 + seed % 32; ++i) {
      stack.push_back(0x400000 + seed * 17 + i * 4096);
    }
    return stack;
  }

  FakeVirtualMemory memory_;
  StackDepot depot_{memory_};
};

TEST_F(StackDepotTest, EqualStacksHaveOneNumber) {
  Start(kMiB);
  std::vector<StackId> ids;
  for (std::size_t i = 0; i < 1000; ++i) {
    ids.push_back(depot_.Intern(StackOf(i)));
    ASSERT_NE(ids.back(), 0U);
  }
  EXPECT_EQ(depot_.stacks(), 1000U);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(depot_.Intern(StackOf(i)), ids[i]);
    EXPECT_EQ(FramesOf(ids[i]), StackOf(i));
  }
  EXPECT_EQ(depot_.stacks(), 1000U);
  EXPECT_EQ(depot_.dropped(), 0U);
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST_F(StackDepotTest, APrefixIsAnotherStack) {
  Start(kMiB);
  const Stack stack = {0x1000, 0x2000, 0x3000};
  const StackId whole = depot_.Intern(stack);
  const StackId part = depot_.Intern(std::span(stack).first(2));
  EXPECT_NE(whole, part);
  EXPECT_EQ(FramesOf(part), Stack({0x1000, 0x2000}));
}

TEST_F(StackDepotTest, TheEmptyStackIsNone) {
  Start(kMiB);
  EXPECT_EQ(depot_.Intern({}), 0U);
  EXPECT_TRUE(depot_.Frames(0).empty());
  EXPECT_EQ(depot_.dropped(), 0U);
}

TEST_F(StackDepotTest, WhatDoesNotFitIsCounted) {
  constexpr std::size_t kBytes = 100'001;
  Start(kBytes);
  std::uint64_t kept = 0;
  std::uint64_t refused = 0;
  for (std::size_t i = 0; i < 2000; ++i) {
    ++(depot_.Intern(StackOf(i)) != 0 ? kept : refused);
  }
  EXPECT_GT(kept, 100U);
  EXPECT_GT(refused, 100U);
  EXPECT_EQ(depot_.stacks(), kept);
  EXPECT_EQ(depot_.dropped(), refused);
  EXPECT_LE(memory_.mapped_bytes(), kBytes);
  // What is there stays there.
  EXPECT_EQ(FramesOf(depot_.Intern(StackOf(0))), StackOf(0));
}

TEST_F(StackDepotTest, KeepsNothingIfItMayNot) {
  Start(0);
  EXPECT_EQ(depot_.Intern(StackOf(3)), 0U);
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
}

TEST_F(StackDepotTest, KeepsNothingWithoutMemory) {
  memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  Start(kMiB);
  EXPECT_EQ(depot_.Intern(StackOf(3)), 0U);
  EXPECT_EQ(depot_.Next(0), 0U);
}

TEST_F(StackDepotTest, NextGoesThroughAll) {
  Start(kMiB);
  for (std::size_t i = 0; i < 100; ++i) {
    depot_.TallyOf(depot_.Intern(StackOf(i))).blocks = i;
  }
  std::size_t seen = 0;
  std::uint64_t sum = 0;
  for (StackId id = depot_.Next(0); id != 0; id = depot_.Next(id)) {
    EXPECT_EQ(FramesOf(id), StackOf(depot_.TallyOf(id).blocks));
    sum += depot_.TallyOf(id).blocks;
    ++seen;
  }
  EXPECT_EQ(seen, 100U);
  EXPECT_EQ(sum, 99U * 100 / 2);
}

// Those of some moment, each of them whole.
TEST_F(StackDepotTest, NextGoesThroughWhatAnotherThreadAdds) {
  constexpr std::size_t kStacks = 2000;
  Start(4 * kMiB);
  std::thread adding([this] {
    for (std::size_t i = 0; i < kStacks; ++i) depot_.Intern(StackOf(i));
  });
  StackId last = 0;
  for (std::size_t seen = 0; seen < kStacks;) {
    const StackId id = depot_.Next(last);
    if (id == 0) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(FramesOf(id), StackOf(seen));
    last = id;
    ++seen;
  }
  adding.join();
  EXPECT_EQ(depot_.Next(last), 0U);
}

TEST_F(StackDepotTest, ThreadsAgreeOnNumbers) {
  constexpr std::size_t kStacks = 2000;
  constexpr std::size_t kThreads = 4;
  Start(4 * kMiB);
  std::vector<std::vector<StackId>> ids(kThreads,
                                        std::vector<StackId>(kStacks));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kStacks; ++i) {
        ids[t][i] = depot_.Intern(StackOf(i));
        EXPECT_EQ(FramesOf(ids[t][i]), StackOf(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 1; t < kThreads; ++t) EXPECT_EQ(ids[t], ids[0]);
  EXPECT_EQ(depot_.stacks(), kStacks);
}

}  // namespace
}  // namespace hakmem
