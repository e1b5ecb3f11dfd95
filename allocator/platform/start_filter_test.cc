#include "allocator/platform/start_filter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <thread>

#include "allocator/base/call_filter.h"
#include "allocator/base/line_end.h"
#include "allocator/platform/fake_sandbox.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

void Forget() { g_filter.store(Filter::kUnknown, std::memory_order_relaxed); }

TEST(StartFilter, TellsWhetherThereIsOne) {
  Forget();
  IsFiltered();
  EXPECT_NE(g_filter.load(std::memory_order_relaxed), Filter::kUnknown);
  EXPECT_FALSE(IsFilterNoted());
  const auto ask = [](std::initializer_list<int> calls) {
    if (!ForbidSystemCalls(calls)) _exit(0);
    Forget();
    _exit(IsFiltered() && !IsFilterNoted() ? 0 : 1);
  };
  EXPECT_EXIT(ask({SYS_mincore}), testing::ExitedWithCode(0), "");
  // Where the kernel does not tell, there may be one.
  EXPECT_EXIT(ask({SYS_openat}), testing::ExitedWithCode(0), "");
}

// Not that of the thread that asks, whose filter counts.
TEST(StartFilter, FindsTheProcesssNumberAndTheThreadsFilter) {
  const auto ask = [](std::initializer_list<int> calls) {
    bool found = false;
    std::thread([&] {
      if (calls.size() != 0 && !ForbidSystemCalls(calls)) _exit(0);
      Forget();
      NoteProcessId(0);
      found = IsFiltered();
    }).join();
    if (NotedProcessId() != getpid()) _exit(2);
    _exit(found || calls.size() == 0 ? 0 : 1);
  };
  EXPECT_EXIT(ask({}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ask({SYS_mincore}), testing::ExitedWithCode(0), "");
}

TEST(StartFilter, TheProgramsOwnStays) {
  Forget();
  NoteFilter();
  EXPECT_TRUE(IsFiltered());
  EXPECT_TRUE(IsFilterNoted());
  Forget();
}

}  // namespace
}  // namespace hakmem
