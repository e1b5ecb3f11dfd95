#include "allocator/base/zero_bytes.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Every length around the steps, in the middle of bytes that must stay.
TEST(ZeroBytesTest, ClearsExactlyWhatItIsTold) {
  for (std::size_t bytes = 0; bytes < 200; ++bytes) {
    std::vector<unsigned char> memory(bytes + 64, 0xa5);
    ZeroBytes(memory.data() + 32, bytes);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      EXPECT_EQ(memory[i], i - 32 < bytes ? 0 : 0xa5) << bytes << " " << i;
    }
  }
}

TEST(ZeroBytesTest, ShortFormClearsExactlyWhatItIsTold) {
  for (std::size_t bytes = kZeroStepBytes; bytes < 200; ++bytes) {
    std::vector<unsigned char> memory(bytes + 64, 0xa5);
    ZeroShort(memory.data() + 32, bytes);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      EXPECT_EQ(memory[i], i - 32 < bytes ? 0 : 0xa5) << bytes << " " << i;
    }
  }
}

TEST(ZeroBytesTest, FindsEveryByteThatIsNotZero) {
  for (std::size_t bytes = kZeroStepBytes; bytes < 140; ++bytes) {
    std::vector<char> memory(bytes + 2);
    memory.front() = memory.back() = 1;
    char* const start = memory.data() + 1;
    EXPECT_TRUE(IsZeroShort(start, bytes));
    EXPECT_EQ(FirstNonZero(start, bytes), bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      start[at] = 1;
      EXPECT_FALSE(IsZeroShort(start, bytes)) << bytes << " " << at;
      EXPECT_EQ(FirstNonZero(start, bytes), at);
      start[at] = 0;
    }
  }
}

}  // namespace
}  // namespace hakmem
