#include "allocator/platform/raw_copy.h"

#include <cstddef>
#include <string>
#include <vector>

#include "gtest/gtest.h"

extern "C" {
void* hakmem_raw_memcpy(void* target, const void* source, std::size_t bytes);
void* hakmem_raw_memmove(void* target, const void* source, std::size_t bytes);
void* hakmem_raw_memset(void* target, int value, std::size_t bytes);
char* hakmem_raw_strncpy(char* target, const char* source, std::size_t bytes);
}

namespace hakmem {
namespace {

// Around all steps between short, vector and long.
constexpr std::size_t kLengths[] = {
    0,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16,  17,  31,   32,   33,   47,
    63, 64, 65, 66, 80, 96, 97, 127, 128, 129, 255, 256, 1000, 4096, 70000};
constexpr std::size_t kMargin = 100;

std::string Letters(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>('a' + (i * 7 + i / 26) % 26);
  }
  return text;
}

// The target begins so far before or behind the source, which it overlaps.
void ExpectMoves(std::size_t bytes, std::ptrdiff_t distance) {
  const std::string before = Letters(bytes + 2 * kMargin);
  std::string expected = before;
  expected.replace(kMargin + distance, bytes, before, kMargin, bytes);
  std::string text = before;
  char* const from = text.data() + kMargin;
  ASSERT_EQ(RawMove(from + distance, from, bytes), from + distance);
  ASSERT_EQ(text, expected) << bytes << " bytes by " << distance;
}

void ExpectAllWorks() {
  for (const std::size_t bytes : kLengths) {
    for (const std::ptrdiff_t distance :
         {-100, -65, -64, -33, -16, -8, -1, 0, 1, 3, 15, 16, 17, 64, 100}) {
      ASSERT_NO_FATAL_FAILURE(ExpectMoves(bytes, distance));
    }
    const std::string source = Letters(bytes);
    std::vector<char> target(bytes + 2, '#');
    ASSERT_EQ(RawMove(target.data() + 1, source.data(), bytes),
              target.data() + 1);
    ASSERT_EQ(std::string(target.begin(), target.end()), "#" + source + "#");
    // Its low byte counts.
    ASSERT_EQ(RawFill(target.data() + 1, 0x1242, bytes), target.data() + 1);
    ASSERT_EQ(std::string(target.begin(), target.end()),
              "#" + std::string(bytes, 'B') + "#");
  }
}

TEST(RawCopyTest, ByTheProcessorAndThenByLibc) {
  ExpectAllWorks();
  UseLibcsCopies();
  ExpectAllWorks();
}

TEST(RawCopyTest, TheNamesThatReplaceLibcs) {
  char text[] = "0123456789";
  EXPECT_EQ(hakmem_raw_memcpy(text, "ab", 2), text);
  EXPECT_EQ(hakmem_raw_memmove(text + 4, text + 3, 4), text + 4);
  EXPECT_EQ(hakmem_raw_memset(text + 9, 'x', 1), text + 9);
  EXPECT_STREQ(text, "ab2334568x");
  EXPECT_EQ(hakmem_raw_strncpy(text + 5, "cd", 4), text + 5);
  EXPECT_EQ(std::string(text, 10), std::string("ab233cd\0\0x", 10));
  EXPECT_EQ(hakmem_raw_strncpy(text, "efghi", 2), text);
  EXPECT_STREQ(text, "ef233cd");
}

}  // namespace
}  // namespace hakmem
