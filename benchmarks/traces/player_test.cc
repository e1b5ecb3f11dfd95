#include "benchmarks/traces/player.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "benchmarks/traces/plan.h"
#include "benchmarks/traces/trace_format.h"
#include "gtest/gtest.h"

namespace hakmem::traces {
namespace {

std::span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string Write(const std::vector<Event>& events) {
  Writer writer;
  for (const Event& event : events) writer.Add(event);
  return writer.Finish();
}

// The process's malloc, with a diary.
struct WatchedHeap {
  struct Call {
    Op op;
    std::size_t size;
    std::size_t alignment;
    std::thread::id thread;
  };

  static inline std::mutex mutex;
  static inline std::vector<Call> calls;
  static inline std::unordered_map<void*, std::size_t> alive;
  static inline int mistakes = 0;
  static inline bool forgetful = false;  // realloc does not copy
  static inline std::size_t refused = SIZE_MAX;

  static void Forget() {
    calls.clear();
    mistakes = 0;
    forgetful = false;
    refused = SIZE_MAX;
  }

  static void* Note(Op op, std::size_t size, std::size_t alignment,
                    void* block) {
    const std::lock_guard guard(mutex);
    calls.push_back({op, size, alignment, std::this_thread::get_id()});
    if (block != nullptr) alive[block] = size;
    return block;
  }

  static void* Allocate(std::size_t size) {
    return Note(Op::kAllocate, size, 0,
                size >= refused ? nullptr : std::malloc(size));
  }
  static void* AllocateZeroed(std::size_t size) {
    return Note(Op::kAllocateZeroed, size, 0, std::calloc(1, size));
  }
  static void* AllocateAligned(std::size_t alignment, std::size_t size) {
    return Note(Op::kAllocateAligned, size, alignment,
                ProcessHeap::AllocateAligned(alignment, size));
  }
  static void* Reallocate(void* block, std::size_t size) {
    Release(block);
    void* const moved =
        forgetful ? std::calloc(1, size) : std::realloc(block, size);
    if (forgetful) std::free(block);
    return Note(Op::kReallocate, size, 0, moved);
  }
  static void Free(void* block) {
    if (block == nullptr) return;
    Release(block);
    Note(Op::kFree, 0, 0, nullptr);
    std::free(block);
  }

  static void Release(void* block) {
    const std::lock_guard guard(mutex);
    if (alive.erase(block) != 1) ++mistakes;
  }
};

class PlayerTest : public testing::Test {
 protected:
  void SetUp() override { WatchedHeap::Forget(); }

  // The error of the first of `rounds` that has one.
  const char* Play(const std::vector<Event>& events, int rounds = 1) {
    const std::string trace = Write(events);
    Plan plan;
    const char* const error = plan.Load(Bytes(trace));
    if (error != nullptr) return error;
    Player<WatchedHeap> player(plan);
    EXPECT_TRUE(player.Prepare());
    for (int round = 0; round < rounds; ++round) {
      const Played played = player.Play();
      if (played.error != nullptr) return played.error;
      EXPECT_GT(played.seconds, 0);
    }
    return nullptr;
  }
};

TEST_F(PlayerTest, CallsWhatTheTraceSays) {
  EXPECT_STREQ(Play({
                   {.op = Op::kAllocate, .block = 0, .size = 100},
                   {.op = Op::kAllocateZeroed, .block = 1, .size = 20'000},
                   {.op = Op::kAllocateAligned,
                    .alignment_log2 = 7,
                    .block = 2,
                    .size = 0},
                   {.op = Op::kReallocate, .block = 0, .size = 100'000},
                   {.op = Op::kFree, .block = 0},
                   {.op = Op::kFree, .block = 1},
                   {.op = Op::kFree, .block = 2},
               }),
               nullptr);
  std::string called;
  for (const auto& call : WatchedHeap::calls) {
    called += std::to_string(static_cast<int>(call.op)) + ":" +
              std::to_string(call.size) + ":" + std::to_string(call.alignment) +
              " ";
    EXPECT_EQ(call.thread, std::this_thread::get_id());
  }
  EXPECT_EQ(called, "0:100:0 1:20000:0 2:0:128 3:100000:0 4:0:0 4:0:0 4:0:0 ");
  EXPECT_TRUE(WatchedHeap::alive.empty());
  EXPECT_EQ(WatchedHeap::mistakes, 0);
}

TEST_F(PlayerTest, FreesWhatTheTraceLeavesBehind) {
  EXPECT_STREQ(Play({{.op = Op::kAllocate, .block = 0, .size = 10},
                     {.op = Op::kAllocate, .block = 5, .size = 10}},
                    3),
               nullptr);
  EXPECT_EQ(WatchedHeap::calls.size(), 12U);
  EXPECT_TRUE(WatchedHeap::alive.empty());
}

TEST_F(PlayerTest, EachThreadHasItsOwn) {
  std::vector<Event> events;
  for (std::uint32_t thread = 0; thread < 8; ++thread) {
    events.push_back({.op = Op::kAllocate,
                      .thread = thread,
                      .block = thread,
                      .size = thread + 1});
  }
  EXPECT_STREQ(Play(events), nullptr);
  std::set<std::thread::id> threads;
  for (const auto& call : WatchedHeap::calls) {
    if (call.op == Op::kFree) continue;
    EXPECT_TRUE(threads.insert(call.thread).second);
    EXPECT_EQ(call.thread == std::this_thread::get_id(), call.size == 1);
  }
  EXPECT_EQ(threads.size(), 8U);
}

// Two threads that do nothing but take each other's blocks: each step waits
// for the other thread. The sizes say in which order the steps were done.
TEST_F(PlayerTest, ABlocksStepsKeepTheirOrderUnderContention) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    const std::uint32_t thread = i % 2;
    events.push_back(
        {.op = Op::kAllocate, .thread = thread, .size = 4 * i + 1});
    events.push_back(
        {.op = Op::kReallocate, .thread = 1 - thread, .size = 4 * i + 2});
    events.push_back(
        {.op = Op::kReallocate, .thread = thread, .size = 4 * i + 3});
    events.push_back({.op = Op::kFree, .thread = 1 - thread});
  }
  EXPECT_STREQ(Play(events, 2), nullptr);
  EXPECT_EQ(WatchedHeap::mistakes, 0);
  ASSERT_EQ(WatchedHeap::calls.size(), 2 * events.size());
  for (std::size_t i = 0; i < WatchedHeap::calls.size(); ++i) {
    const Event& event = events[i % events.size()];
    ASSERT_EQ(WatchedHeap::calls[i].op, event.op) << "step " << i;
    ASSERT_EQ(WatchedHeap::calls[i].size, event.size) << "step " << i;
  }
}

TEST_F(PlayerTest, ManyThreadsShareManyBlocks) {
  std::mt19937 random(23);
  std::vector<bool> alive(40);
  std::vector<Event> events;
  for (int i = 0; i < 30'000; ++i) {
    const std::uint32_t block = random() % 40;
    Event event = {.thread = static_cast<std::uint32_t>(random() % 6),
                   .block = block};
    if (alive[block]) {
      event.op = random() % 3 == 0 ? Op::kReallocate : Op::kFree;
    }
    alive[block] = event.op != Op::kFree;
    if (alive[block]) event.size = random() % 3'000;
    events.push_back(event);
  }
  EXPECT_STREQ(Play(events, 2), nullptr);
  EXPECT_EQ(WatchedHeap::mistakes, 0);
  EXPECT_TRUE(WatchedHeap::alive.empty());
}

TEST_F(PlayerTest, SeesThatReallocLostWhatTheBlockHeld) {
  WatchedHeap::forgetful = true;
  // The other thread waits for a turn that never comes.
  EXPECT_STREQ(Play({{.op = Op::kAllocate, .size = 10},
                     {.op = Op::kReallocate, .size = 10'000},
                     {.op = Op::kFree, .thread = 1}}),
               "realloc did not keep what the block held");
}

TEST_F(PlayerTest, SaysThatMemoryIsOut) {
  WatchedHeap::refused = 50'000;
  EXPECT_STREQ(Play({{.op = Op::kAllocate, .block = 0, .size = 10},
                     {.op = Op::kAllocate, .block = 1, .size = 50'000}}),
               "out of memory");
  EXPECT_TRUE(WatchedHeap::alive.empty());
}

TEST(Plan, RefusesBlocksThatAreNotAsTheyShouldBe) {
  constexpr const char* kError =
      "it allocates a block that is alive, or uses one that is not";
  const auto load = [](const std::vector<Event>& events) {
    const std::string trace = Write(events);
    return Plan().Load(Bytes(trace));
  };
  const Event allocate = {.op = Op::kAllocate, .size = 8};
  const Event reallocate = {.op = Op::kReallocate, .size = 8};
  const Event release = {.op = Op::kFree};
  EXPECT_STREQ(load({release}), kError);
  EXPECT_STREQ(load({reallocate}), kError);
  EXPECT_STREQ(load({allocate, allocate}), kError);
  EXPECT_STREQ(load({allocate, release, release}), kError);
  EXPECT_STREQ(load({allocate, release, reallocate}), kError);
  EXPECT_STREQ(load({allocate, reallocate, release, allocate}), nullptr);
}

TEST(Plan, KnowsThePeak) {
  const std::string trace =
      Write({{.op = Op::kAllocate, .block = 0, .size = 100},
             {.op = Op::kAllocate, .thread = 1, .block = 1, .size = 50},
             {.op = Op::kReallocate, .block = 0, .size = 20},
             {.op = Op::kFree, .block = 1},
             {.op = Op::kAllocate, .block = 2, .size = 60}});
  Plan plan;
  ASSERT_STREQ(plan.Load(Bytes(trace)), nullptr);
  EXPECT_EQ(plan.peak_bytes(), 150U);
  EXPECT_EQ(plan.steps(0).size(), 4U);
  EXPECT_EQ(plan.steps(1).size(), 1U);
}

// Damage that the format allows: refused, or a plan that can be followed.
TEST(Plan, LoadsOrRefusesDamagedTraces) {
  std::mt19937_64 random(31);
  int loaded = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::vector<Event> events;
    for (std::uint32_t block = 0; block < 8; ++block) {
      const std::uint32_t thread = block % 3;
      events.push_back({.thread = thread, .block = block, .size = block});
      events.push_back({.op = Op::kFree, .thread = thread, .block = block});
    }
    Event& damaged = events[random() % events.size()];
    damaged.op = static_cast<Op>(random() % 5);
    damaged.block = random() % 8;
    const std::string trace = Write(events);
    Plan plan;
    if (plan.Load(Bytes(trace)) != nullptr) continue;
    ++loaded;
    Player<ProcessHeap> player(plan);
    ASSERT_TRUE(player.Prepare());
    ASSERT_STREQ(player.Play().error, nullptr);
  }
  EXPECT_GT(loaded, 500);
  EXPECT_LT(loaded, 4'500);
}

}  // namespace
}  // namespace hakmem::traces
