// Failure events, as the program sees them: one for each call, with the
// function it called, through hakmem.h.

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kTooLarge = std::size_t{1} << 60;

std::vector<hakmem_failure_event> Events(std::size_t capacity = 300) {
  std::vector<hakmem_failure_event> events(capacity);
  events.resize(Hakmem().failure_events(events.data(), capacity,
                                        sizeof(hakmem_failure_event)));
  return events;
}

std::uint64_t Recorded() {
  const auto events = Events(1);
  return events.empty() ? 0 : events[0].sequence;
}

// What `call` adds to the ring, which must be one event.
hakmem_failure_event EventOf(const std::function<void()>& call) {
  const std::uint64_t before = Recorded();
  call();
  const auto events = Events(1);
  EXPECT_EQ(Recorded(), before + 1);
  return events.empty() ? hakmem_failure_event() : events[0];
}

class FailuresTest : public testing::Test {
 protected:
  void SetUp() override { HAKMEM_ONLY_ON_HAKMEM(); }
  void TearDown() override {
    std::set_new_handler(nullptr);
    if (OnHakmem()) Hakmem().set_failure_handler(nullptr, nullptr);
  }
};

struct Case {
  const char* call;
  std::function<void*()> function;
  const char* disposition = "returned_null";
};

void* PosixMemalign(std::size_t size) {
  void* block = nullptr;
  errno = 77;
  EXPECT_EQ(posix_memalign(&block, 64, size), ENOMEM);
  return block;
}

template <typename Function>
void* NullIfThrown(Function function) {
  errno = ENOMEM;
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Every function of C that allocates, with a size that none can serve.
std::vector<Case> CCases() {
  static void* const block = malloc(100);
  return {
      {"malloc", [] { return malloc(kTooLarge); }},
      {"calloc", [] { return calloc(kTooLarge, 1); }},
      {"calloc", [] { return calloc(kTooLarge, kTooLarge); }},
      {"realloc", [] { return realloc(block, kTooLarge); }},
      {"realloc", [] { return realloc(nullptr, kTooLarge); }},
      {"reallocarray", [] { return reallocarray(block, kTooLarge, 2); }},
      {"reallocarray", [] { return reallocarray(nullptr, kTooLarge, 2); }},
      {"reallocarray",
       [] { return reallocarray(block, kTooLarge, kTooLarge); }},
      {"aligned_alloc", [] { return aligned_alloc(64, kTooLarge); }},
      {"aligned_alloc", [] { return aligned_alloc(Opaque(kTooLarge), 64); }},
      {"memalign", [] { return memalign(64, kTooLarge); }},
      {"posix_memalign", [] { return PosixMemalign(kTooLarge); }},
      {"valloc", [] { return valloc(kTooLarge); }},
      {"pvalloc", [] { return pvalloc(kTooLarge); }},
      {"pvalloc", [] { return pvalloc(SIZE_MAX); }},
  };
}

// The same for C++.
std::vector<Case> CppCases() {
  constexpr auto kAlignment = std::align_val_t{64};
  return {
      {"operator new",
       [] { return NullIfThrown([] { return ::operator new(kTooLarge); }); },
       "threw"},
      {"operator new[]",
       [] { return NullIfThrown([] { return ::operator new[](kTooLarge); }); },
       "threw"},
      {"operator new",
       [] {
         return NullIfThrown(
             [] { return ::operator new(kTooLarge, kAlignment); });
       },
       "threw"},
      {"operator new[]",
       [] {
         return NullIfThrown(
             [] { return ::operator new[](kTooLarge, kAlignment); });
       },
       "threw"},
      {"operator new",
       [] {
         return NullIfThrown(
             [] { return ::operator new(64, Opaque(std::align_val_t{3})); });
       },
       "threw"},
      {"operator new(nothrow)",
       [] {
         errno = ENOMEM;
         return ::operator new(kTooLarge, std::nothrow);
       }},
      {"operator new[](nothrow)",
       [] {
         errno = ENOMEM;
         return ::operator new[](kTooLarge, std::nothrow);
       }},
      {"operator new(nothrow)",
       [] {
         errno = ENOMEM;
         return ::operator new(kTooLarge, kAlignment, std::nothrow);
       }},
      {"operator new[](nothrow)",
       [] {
         errno = ENOMEM;
         return ::operator new[](kTooLarge, kAlignment, std::nothrow);
       }},
      {"operator new(nothrow)",
       [] {
         errno = ENOMEM;
         return ::operator new(64, Opaque(std::align_val_t{3}), std::nothrow);
       }},
  };
}

TEST_F(FailuresTest, EachFunctionMakesOneEventWithItsName) {
  std::vector<Case> cases = CCases();
  const std::vector<Case> cpp_cases = CppCases();
  cases.insert(cases.end(), cpp_cases.begin(), cpp_cases.end());
  for (const Case& failing : cases) {
    SCOPED_TRACE(failing.call);
    const hakmem_failure_event event = EventOf([&] {
      errno = 0;
      EXPECT_EQ(Opaque(failing.function()), nullptr);
      EXPECT_EQ(errno, ENOMEM);
    });
    EXPECT_STREQ(event.call, failing.call);
    EXPECT_STREQ(event.reason, "Threshold");
    EXPECT_STREQ(event.disposition, failing.disposition);
    EXPECT_EQ(event.attempts, 1u);
    EXPECT_EQ(event.process_id, getpid());
    EXPECT_EQ(event.thread_id, gettid());
    EXPECT_STREQ(event.refused_call, "none");
    EXPECT_GT(event.frame_count, 0u);
    EXPECT_GT(event.mapped_bytes, 0u);
  }
}

TEST_F(FailuresTest, SaysWhatWasAskedFor) {
  hakmem_failure_event event =
      EventOf([] { Opaque(malloc(Opaque(kTooLarge))); });
  EXPECT_EQ(event.size_bytes, kTooLarge);
  EXPECT_EQ(event.alignment_bytes, 16u);
  EXPECT_EQ(event.count, 0u);
  EXPECT_STREQ(event.route, "huge");
  EXPECT_STREQ(event.detail, "size");
  EXPECT_STREQ(event.limit_name, "region");
  event = EventOf([] { Opaque(calloc(7, Opaque(kTooLarge))); });
  EXPECT_EQ(event.size_bytes, kTooLarge);
  EXPECT_EQ(event.count, 7u);
  EXPECT_STREQ(event.detail, "size");
  event = EventOf([] { Opaque(calloc(SIZE_MAX / 2, Opaque(3))); });
  EXPECT_EQ(event.size_bytes, 3u);
  EXPECT_EQ(event.count, SIZE_MAX / 2);
  EXPECT_STREQ(event.detail, "overflow");
  event =
      EventOf([] { Opaque(reallocarray(nullptr, 3, Opaque(SIZE_MAX / 2))); });
  EXPECT_EQ(event.count, 3u);
  EXPECT_STREQ(event.detail, "overflow");
  event = EventOf([] { Opaque(memalign(Opaque(kTooLarge), 5)); });
  EXPECT_EQ(event.size_bytes, 5u);
  EXPECT_EQ(event.alignment_bytes, kTooLarge);
  EXPECT_STREQ(event.detail, "alignment");
  EXPECT_STREQ(event.limit_name, "region");
  event = EventOf([] {
    EXPECT_EQ(::operator new(64, Opaque(std::align_val_t{3}), std::nothrow),
              nullptr);
  });
  EXPECT_STREQ(event.detail, "alignment");
  EXPECT_STREQ(event.limit_name, "");
}

// Calls with arguments that are not valid are no failures.
TEST_F(FailuresTest, InvalidArgumentsMakeNoEvent) {
  const std::uint64_t before = Recorded();
  void* block = nullptr;
  EXPECT_EQ(posix_memalign(&block, 3, 10), EINVAL);
  EXPECT_EQ(aligned_alloc(Opaque<std::size_t>(3), 10), nullptr);
  EXPECT_EQ(memalign(Opaque(SIZE_MAX), 10), nullptr);
  EXPECT_EQ(Recorded(), before);
}

__attribute__((noinline)) void* FailingFunction() {
  return Opaque(malloc(Opaque(kTooLarge)));
}

// The innermost frame is in the function that called malloc.
TEST_F(FailuresTest, FramesBeginWithTheCaller) {
  for (const auto& function :
       {std::function<void*()>(&FailingFunction),
        std::function<void*()>([] { return realloc(nullptr, kTooLarge); })}) {
    const hakmem_failure_event event = EventOf([&] { function(); });
    ASSERT_GT(event.frame_count, 0u);
  }
  const hakmem_failure_event event = EventOf([] { FailingFunction(); });
  const auto begin = reinterpret_cast<std::uintptr_t>(&FailingFunction);
  EXPECT_GT(event.frames[0], begin);
  EXPECT_LT(event.frames[0], begin + 200);
}

TEST_F(FailuresTest, KeepsTheLastOnesNewestFirst) {
  for (int i = 0; i < 300; ++i) FailingFunction();
  const auto events = Events();
  ASSERT_EQ(events.size(), 256u);
  for (std::size_t i = 1; i < events.size(); ++i) {
    ASSERT_EQ(events[i].sequence + 1, events[i - 1].sequence);
  }
  EXPECT_EQ(Events(0).size(), 0u);
  EXPECT_EQ(Events(3).size(), 3u);
}

// Programs that were compiled with an older or a newer hakmem.h.
TEST_F(FailuresTest, TheCallersSizeCounts) {
  for (int i = 0; i < 2; ++i) FailingFunction();
  struct Older {
    std::uint64_t sequence;
    std::uint64_t time_ns;
  } older[3] = {{1, 2}, {3, 4}, {5, 6}};
  ASSERT_EQ(
      Hakmem().failure_events(reinterpret_cast<hakmem_failure_event*>(older), 2,
                              sizeof(Older)),
      2u);
  EXPECT_EQ(older[0].sequence, older[1].sequence + 1);
  EXPECT_GT(older[0].time_ns, 1'000'000'000'000'000'000u);
  EXPECT_EQ(older[2].sequence, 5u);
  struct Newer {
    hakmem_failure_event known;
    std::uint64_t more;
  } newer = {};
  newer.more = 77;
  ASSERT_EQ(Hakmem().failure_events(&newer.known, 1, sizeof(newer)), 1u);
  EXPECT_EQ(newer.known.sequence, older[0].sequence);
  EXPECT_EQ(newer.more, 0u);
}

TEST(Failures, DISABLED_CountsWhatIsLive) {
  std::vector<void*> blocks(10'000);
  for (void*& block : blocks) block = malloc(1000);
  for (std::size_t i = 10; i < blocks.size(); ++i) free(blocks[i]);
  hakmem_failure_event events[2] = {};
  FailingFunction();
  const struct mallinfo2 info = mallinfo2();
  FailingFunction();
  ASSERT_EQ(Hakmem().failure_events(events, 2, sizeof(events[0])), 2u);
  EXPECT_EQ(events[1].live_bytes, info.uordblks + info.hblkhd);
  EXPECT_GE(events[1].live_bytes, 10'000u);
  EXPECT_GE(events[1].granted_bytes, events[1].live_bytes);
  if (events[0].monotonic_ns - events[1].monotonic_ns < 1'000'000'000) {
    EXPECT_EQ(events[0].live_bytes, UINT64_MAX);
  }
  EXPECT_GT(events[0].granted_bytes, 0u);
  for (std::size_t i = 0; i < 10; ++i) free(blocks[i]);
}

// Of two failed calls within a second the first counts.
TEST_F(FailuresTest, CountsWhatIsLive) {
  const ChildResult child =
      RunChild({.test = "Failures.DISABLED_CountsWhatIsLive"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

// --- The new-handler ---------------------------------------------------------

int g_handler_calls = 0;

TEST_F(FailuresTest, TheNewHandlerIsPartOfTheCall) {
  g_handler_calls = 0;
  std::set_new_handler([] {
    // The event is in the ring already.
    EXPECT_STREQ(Events(1)[0].disposition, "pending");
    if (++g_handler_calls == 3) std::set_new_handler(nullptr);
  });
  hakmem_failure_event event = EventOf([] {
    EXPECT_THROW(::operator delete(::operator new(Opaque(kTooLarge))),
                 std::bad_alloc);
  });
  EXPECT_EQ(g_handler_calls, 3);
  EXPECT_STREQ(event.disposition, "threw");
  EXPECT_STREQ(event.call, "operator new");
}

TEST_F(FailuresTest, AnExceptionOfTheNewHandlerEndsTheCall) {
  struct Mine {};
  std::set_new_handler([] { throw Mine(); });
  hakmem_failure_event event = EventOf([] {
    EXPECT_THROW(::operator delete(::operator new(Opaque(kTooLarge))), Mine);
  });
  EXPECT_STREQ(event.disposition, "threw");
  std::set_new_handler([] { throw std::bad_alloc(); });
  event = EventOf([] {
    EXPECT_EQ(::operator new(Opaque(kTooLarge), std::nothrow), nullptr);
  });
  EXPECT_STREQ(event.disposition, "returned_null");
  EXPECT_STREQ(event.call, "operator new(nothrow)");
}

// --- The failure handler -----------------------------------------------------

struct Seen {
  int calls = 0;
  int again = 0;
  std::string call;
  std::string disposition;
};

TEST_F(FailuresTest, TheFailureHandlerSeesTheEvent) {
  Seen seen;
  Hakmem().set_failure_handler(
      [](const hakmem_failure_event* event, void* context) {
        auto* to = static_cast<Seen*>(context);
        ++to->calls;
        to->call = event->call;
        to->disposition = event->disposition;
        // What fails in here does not call the handler again.
        EXPECT_EQ(malloc(Opaque(kTooLarge)), nullptr);
        return 0;
      },
      &seen);
  const std::uint64_t before = Recorded();
  errno = 0;
  EXPECT_EQ(calloc(Opaque(kTooLarge), 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.call, "calloc");
  EXPECT_EQ(seen.disposition, "pending");
  EXPECT_EQ(Recorded(), before + 2);
  EXPECT_STREQ(Events(2)[1].disposition, "returned_null");
  Hakmem().set_failure_handler(nullptr, nullptr);
  FailingFunction();
  EXPECT_EQ(seen.calls, 1);
}

// --- In processes of their own: limits, forks --------------------------------

void* g_reserve = nullptr;

TEST(Failures, DISABLED_AHandlerFreesMemory) {
  g_reserve = malloc(30 * kTestMiB);
  Hakmem().set_failure_handler(
      [](const hakmem_failure_event* event, void*) {
        EXPECT_STREQ(event->detail, "heap_limit");
        EXPECT_STREQ(event->limit_name, "HAKMEM_HEAP_LIMIT");
        const int again = g_reserve != nullptr ? 1 : 0;
        free(g_reserve);
        g_reserve = nullptr;
        return again;
      },
      nullptr);
  errno = 77;
  void* const block = malloc(30 * kTestMiB);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(errno, 77);
  EXPECT_STREQ(Events(1)[0].disposition, "served_after_handler");
  EXPECT_EQ(malloc(30 * kTestMiB), nullptr);
  EXPECT_STREQ(Events(1)[0].disposition, "returned_null");
  Hakmem().set_failure_handler(nullptr, nullptr);
  // The same by the new-handler.
  g_reserve = block;
  std::set_new_handler([] {
    std::set_new_handler(nullptr);
    free(g_reserve);
  });
  void* const created = ::operator new(Opaque(30 * kTestMiB));
  EXPECT_NE(created, nullptr);
  EXPECT_STREQ(Events(1)[0].disposition, "served_after_new_handler");
  EXPECT_STREQ(Events(1)[0].call, "operator new");
  // And by what hakmem keeps itself: all of it is one SuperSlab's worth.
  ::operator delete(created);
  std::vector<void*> small;
  while (std::strcmp(Events(1)[0].disposition, "served_after_purge") != 0) {
    small.push_back(malloc(1000));
    ASSERT_NE(small.back(), nullptr);
  }
  hakmem_statistics statistics = {};
  Hakmem().get_statistics(&statistics, sizeof(statistics));
  EXPECT_EQ(statistics.failures, 1u);
}

TEST_F(FailuresTest, MemoryThatIsFreedServesTheCall) {
  // What is kept stays so however long the child takes.
  const ChildResult child = RunChild(
      {.test = "Failures.DISABLED_AHandlerFreesMemory",
       .environment = {"HAKMEM_HEAP_LIMIT=48M", "HAKMEM_DECAY_MS=86400000"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST_F(FailuresTest, AChildCountsItsOwn) {
  FailingFunction();
  EXPECT_EQ(RunInFork([] {
              if (!Events().empty()) _exit(1);
              FailingFunction();
              if (Events().size() != 1 || Recorded() != 1) _exit(2);
              if (Events()[0].process_id != getpid()) _exit(3);
            }),
            0);
}

TEST_F(FailuresTest, ThreadsFailTogether) {
  constexpr int kEach = 500;
  const std::uint64_t before = Recorded();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < kEach; ++round) FailingFunction();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Recorded(), before + 4 * kEach);
  // But for a slot that each of them may have been stopped in while 256 more
  // came; none stays so.
  EXPECT_GE(Events().size(), 252u);
  for (int round = 0; round < 256; ++round) FailingFunction();
  EXPECT_EQ(Events().size(), 256u);
}

// Every n-th mapping call refused: no crash, and what failed says why.
TEST(Failures, DISABLED_UseOfAllKinds) {
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t size : kOfEachRoute) {
      void* block = malloc(size);
      if (block != nullptr) FillBlock(block, size, 1);
      void* moved = realloc(block, size + size / 2);
      if (moved != nullptr) {
        if (block != nullptr) EXPECT_TRUE(BlockHolds(moved, size, 1));
        block = moved;
      }
      if (block != nullptr) blocks.push_back(block);
    }
  }
  for (void* block : blocks) free(block);
  for (const hakmem_failure_event& event : Events()) {
    EXPECT_STREQ(event.reason, "MapFail");
    EXPECT_STREQ(event.detail, "injected");
    EXPECT_EQ(event.error_number, ENOMEM);
  }
}

TEST_F(FailuresTest, SurvivesRefusedMappingCalls) {
  for (const char* nth : {"20", "21", "22", "23", "24", "25", "26", "27", "28",
                          "29", "30", "31", "32", "40+"}) {
    const ChildResult child =
        RunChild({.test = "Failures.DISABLED_UseOfAllKinds",
                  .environment = {std::string("HAKMEM_FAIL_NTH=") + nth}});
    // googletest itself needs memory: with all calls refused it may give up.
    if (std::strchr(nth, '+') == nullptr) {
      EXPECT_TRUE(ExitedWithZero(child.wait_status)) << nth << child.output;
    }
    EXPECT_EQ(child.output.find("hakmem: fatal"), std::string::npos)
        << nth << child.output;
  }
}

}  // namespace
}  // namespace hakmem
