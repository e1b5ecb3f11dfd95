#include "allocator/platform/fake_range_set.h"

#include <cstddef>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Ranges = std::map<Address, Address>;

TEST(FakeRangeSet, MergesWhatTouches) {
  FakeRangeSet set;
  set.Add(10, 20);
  set.Add(30, 40);
  EXPECT_EQ(set.ranges(), (Ranges{{10, 20}, {30, 40}}));
  set.Add(20, 30);
  EXPECT_EQ(set.ranges(), (Ranges{{10, 40}}));
}

TEST(FakeRangeSet, SplitsWhatIsCut) {
  FakeRangeSet set;
  set.Add(10, 40);
  set.Remove(20, 30);
  EXPECT_EQ(set.ranges(), (Ranges{{10, 20}, {30, 40}}));
}

// Against one flag per address.
TEST(FakeRangeSet, AgreesWithOracle) {
  constexpr Address kEnd = 64;
  std::mt19937 random(1);
  FakeRangeSet set;
  std::vector<bool> flags(kEnd);
  for (int step = 0; step < 20000; ++step) {
    Address begin = random() % kEnd;
    Address end = random() % kEnd + 1;
    if (begin >= end) continue;
    const bool add = random() % 2 == 0;
    add ? set.Add(begin, end) : set.Remove(begin, end);
    for (Address at = begin; at < end; ++at) flags[at] = add;

    begin = random() % kEnd;
    end = begin + 1 + random() % (kEnd - begin);
    std::size_t set_bits = 0;
    for (Address at = begin; at < end; ++at) set_bits += flags[at] ? 1u : 0u;
    ASSERT_EQ(set.ContainsAll(begin, end), set_bits == end - begin);
    ASSERT_EQ(set.ContainsAny(begin, end), set_bits != 0);

    std::size_t bytes = 0;
    std::size_t count = 0;
    for (Address at = 0; at < kEnd; ++at) {
      bytes += flags[at] ? 1u : 0u;
      count += flags[at] && (at == 0 || !flags[at - 1]) ? 1u : 0u;
    }
    ASSERT_EQ(set.bytes(), bytes);
    ASSERT_EQ(set.count(), count);
  }
}

}  // namespace
}  // namespace hakmem
