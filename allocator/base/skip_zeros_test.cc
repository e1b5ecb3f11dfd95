#include "allocator/base/skip_zeros.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename T>
class SkipZerosTest : public testing::Test {};
using Entries = testing::Types<std::uint8_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(SkipZerosTest, Entries);

TYPED_TEST(SkipZerosTest, FindsWhatOneByOneFinds) {
  constexpr std::size_t kEntries = 70;
  alignas(8) std::atomic<TypeParam> table[kEntries] = {};
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    for (std::atomic<TypeParam>& entry : table) entry = 0;
    for (int i = 0; i < round % 5; ++i) {
      // In each of an entry's bytes.
      table[random() % kEntries] = static_cast<TypeParam>(
          TypeParam{1} << random() % (8 * sizeof(TypeParam)));
    }
    for (std::size_t at = 0; at < kEntries; ++at) {
      for (std::size_t first = 0; first <= at; ++first) {
        std::size_t expected = at;
        while (expected != first && table[expected] == 0) --expected;
        ASSERT_EQ(SkipZerosBack(table, at, first), expected)
            << at << " down to " << first;
      }
    }
  }
}

}  // namespace
}  // namespace hakmem
