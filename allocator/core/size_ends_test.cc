#include "allocator/core/size_ends.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(SizeEndsTest, NothingIsServedBefore) {
  const SizeEnds ends;
  EXPECT_EQ(ends.Load().tiny, 0U);
  EXPECT_EQ(ends.Load().pool, 0U);
}

// A thread that was there before the process's start was over.
TEST(SizeEndsTest, WhoSeesPoolsSeesTinys) {
  for (int round = 0; round < 50; ++round) {
    SizeEnds ends;
    std::atomic<bool> looks{false};
    SizeEnds::Ends seen = {};
    std::thread thread([&] {
      looks.store(true);
      do {
        seen = ends.Load();
      } while (seen.pool == 0);
    });
    while (!looks.load()) {
    }
    ends.Open(/*tiny=*/1025, /*pool=*/65537);
    thread.join();
    ASSERT_EQ(seen.tiny, 1025U) << round;
    EXPECT_EQ(seen.pool, 65537U);
  }
}

}  // namespace
}  // namespace hakmem
