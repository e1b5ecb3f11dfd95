#include "allocator/platform/start_filter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "allocator/base/call_filter.h"
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

TEST(StartFilter, TheProgramsOwnStays) {
  Forget();
  NoteFilter();
  EXPECT_TRUE(IsFiltered());
  EXPECT_TRUE(IsFilterNoted());
  Forget();
}

}  // namespace
}  // namespace hakmem
