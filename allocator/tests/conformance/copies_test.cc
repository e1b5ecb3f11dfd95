// memcpy and its relatives do what libc's do, wherever the target is; some
// variants bring their own.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

extern "C" {
void* __memcpy_chk(void*, const void*, std::size_t, std::size_t);
void* __memmove_chk(void*, const void*, std::size_t, std::size_t);
void* __mempcpy_chk(void*, const void*, std::size_t, std::size_t);
void* __memset_chk(void*, int, std::size_t, std::size_t);
char* __strcpy_chk(char*, const char*, std::size_t);
char* __stpcpy_chk(char*, const char*, std::size_t);
char* __strncpy_chk(char*, const char*, std::size_t, std::size_t);
char* __stpncpy_chk(char*, const char*, std::size_t, std::size_t);
char* __strcat_chk(char*, const char*, std::size_t);
char* __strncat_chk(char*, const char*, std::size_t, std::size_t);
}

namespace hakmem {
namespace {

struct Freer {
  void operator()(char* block) const { std::free(block); }
};
using Block = std::unique_ptr<char, Freer>;

Block NewBlock(std::size_t bytes) {
  return Block(static_cast<char*>(Opaque(std::malloc(bytes))));
}

char Letter(std::size_t i) {
  return static_cast<char>('a' + (i * 7 + i / 26) % 26);
}

void FillLetters(char* text, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) text[i] = Letter(i);
}

bool HoldsLetters(const char* text, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (text[i] != Letter(i)) return false;
  }
  return true;
}

bool HoldsOnly(const char* text, std::size_t bytes, char value) {
  return std::all_of(text, text + bytes,
                     [value](char c) { return c == value; });
}

// Blocks of exactly as many bytes as are written, and one inside of a longer
// one.
constexpr std::size_t kMostBytes = 300;
constexpr std::size_t kLongBytes[] = {1000, 4096, 5000, 66'000, 1'000'000};

std::vector<std::size_t> Lengths() {
  std::vector<std::size_t> lengths(std::begin(kLongBytes),
                                   std::end(kLongBytes));
  for (std::size_t i = 0; i <= kMostBytes; ++i) lengths.push_back(i);
  return lengths;
}

TEST(CopiesTest, MemcpyAndMempcpyToTheWholeOfABlock) {
  for (const std::size_t bytes : Lengths()) {
    const std::vector<char> around = [&] {
      std::vector<char> letters(bytes + 1);
      FillLetters(letters.data(), bytes);
      return letters;
    }();
    const Block block = NewBlock(bytes);
    ASSERT_EQ(memcpy(block.get(), around.data(), bytes), block.get());
    ASSERT_TRUE(HoldsLetters(block.get(), bytes)) << bytes;
    const Block other = NewBlock(bytes);
    ASSERT_EQ(mempcpy(other.get(), block.get(), bytes), other.get() + bytes);
    ASSERT_TRUE(HoldsLetters(other.get(), bytes)) << bytes;
    const Block third = NewBlock(bytes);
    ASSERT_EQ(__memcpy_chk(third.get(), block.get(), bytes, bytes),
              third.get());
    ASSERT_EQ(__mempcpy_chk(third.get(), block.get(), bytes, SIZE_MAX),
              third.get() + bytes);
    ASSERT_TRUE(HoldsLetters(third.get(), bytes)) << bytes;
  }
}

TEST(CopiesTest, MemsetOfAPartAndOfTheWhole) {
  for (const std::size_t bytes : Lengths()) {
    const Block block = NewBlock(bytes + 2);
    FillLetters(block.get(), bytes + 2);
    ASSERT_EQ(memset(block.get() + 1, 0x741, bytes), block.get() + 1);
    ASSERT_EQ(block.get()[0], Letter(0));
    ASSERT_TRUE(HoldsOnly(block.get() + 1, bytes, 'A')) << bytes;
    ASSERT_EQ(block.get()[bytes + 1], Letter(bytes + 1)) << bytes;
    ASSERT_EQ(__memset_chk(block.get(), 0, bytes + 2, bytes + 2), block.get());
    ASSERT_TRUE(HoldsOnly(block.get(), bytes + 2, 0)) << bytes;
  }
}

// What memmove has to have done, a byte at a time.
void ExpectMoved(char* text, std::size_t bytes, std::size_t from,
                 std::size_t to, std::size_t count) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const bool moved = i >= to && i < to + count;
    ASSERT_EQ(text[i], Letter(moved ? i - to + from : i))
        << count << " from " << from << " to " << to << " at " << i;
  }
}

TEST(CopiesTest, MemmoveWithEachOverlap) {
  constexpr std::size_t kBytes = 200;
  const Block block = NewBlock(kBytes);
  char stack[kBytes];
  for (char* text : {block.get(), stack}) {
    for (std::size_t count = 0; count < 140; ++count) {
      for (std::size_t from = 0; from < 60; from += 3) {
        for (std::size_t to = 0; to < 60; to += 4) {
          FillLetters(text, kBytes);
          ASSERT_EQ(memmove(text + to, text + from, count), text + to);
          ASSERT_NO_FATAL_FAILURE(ExpectMoved(text, kBytes, from, to, count));
        }
      }
    }
  }
}

TEST(CopiesTest, MemmoveOfLongOnes) {
  constexpr std::size_t kBytes = 300'000;
  const Block block = NewBlock(kBytes);
  for (const std::size_t from : {0, 1, 100, 5000}) {
    for (const std::size_t to : {0, 3, 64, 4000, 70'000}) {
      FillLetters(block.get(), kBytes);
      __memmove_chk(block.get() + to, block.get() + from, 200'000, SIZE_MAX);
      ASSERT_NO_FATAL_FAILURE(
          ExpectMoved(block.get(), kBytes, from, to, 200'000));
    }
  }
}

TEST(CopiesTest, TextsOfEachLength) {
  for (const std::size_t bytes : Lengths()) {
    const Block text = NewBlock(bytes + 1);
    FillLetters(text.get(), bytes);
    text.get()[bytes] = 0;
    const Block a = NewBlock(bytes + 1);
    ASSERT_EQ(strcpy(a.get(), text.get()), a.get());
    ASSERT_STREQ(a.get(), text.get());
    const Block b = NewBlock(bytes + 1);
    ASSERT_EQ(stpcpy(b.get(), text.get()), b.get() + bytes);
    ASSERT_STREQ(b.get(), text.get());
    ASSERT_EQ(__strcpy_chk(b.get(), text.get(), bytes + 1), b.get());
    ASSERT_EQ(__stpcpy_chk(b.get(), text.get(), bytes + 1), b.get() + bytes);
    ASSERT_STREQ(b.get(), text.get());
  }
}

TEST(CopiesTest, FieldsAreFilled) {
  for (std::size_t bytes = 0; bytes < 100; ++bytes) {
    const std::string text(40, 'x');
    const std::size_t length = std::min<std::size_t>(bytes, 40);
    const Block a = NewBlock(bytes);
    const Block b = NewBlock(bytes);
    memset(a.get(), '#', bytes);
    memset(b.get(), '#', bytes);
    ASSERT_EQ(strncpy(a.get(), text.c_str(), bytes), a.get());
    ASSERT_EQ(stpncpy(b.get(), text.c_str(), bytes), b.get() + length);
    for (const char* field : {a.get(), b.get()}) {
      ASSERT_TRUE(HoldsOnly(field, length, 'x')) << bytes;
      ASSERT_TRUE(HoldsOnly(field + length, bytes - length, 0)) << bytes;
    }
    ASSERT_EQ(__strncpy_chk(a.get(), text.c_str(), bytes, bytes), a.get());
    ASSERT_EQ(__stpncpy_chk(b.get(), text.c_str(), bytes, bytes),
              b.get() + length);
    ASSERT_EQ(memcmp(a.get(), b.get(), bytes), 0);
  }
}

TEST(CopiesTest, TextsAreAppended) {
  for (std::size_t first = 0; first < 40; ++first) {
    for (std::size_t second = 0; second < 40; ++second) {
      const std::string head(first, 'h');
      const std::string tail(second, 't');
      const std::string both = head + tail;
      const Block a = NewBlock(both.size() + 1);
      strcpy(a.get(), head.c_str());
      ASSERT_EQ(strcat(a.get(), tail.c_str()), a.get());
      ASSERT_EQ(a.get(), both);
      strcpy(a.get(), head.c_str());
      ASSERT_EQ(strncat(a.get(), (tail + "more").c_str(), second), a.get());
      ASSERT_EQ(a.get(), both);
      strcpy(a.get(), head.c_str());
      ASSERT_EQ(strncat(a.get(), tail.c_str(), SIZE_MAX), a.get());
      ASSERT_EQ(a.get(), both);
      strcpy(a.get(), head.c_str());
      __strcat_chk(a.get(), tail.c_str(), both.size() + 1);
      ASSERT_EQ(a.get(), both);
      strcpy(a.get(), head.c_str());
      __strncat_chk(a.get(), tail.c_str(), second, both.size() + 1);
      ASSERT_EQ(a.get(), both);
    }
  }
}

TEST(CopiesTest, NothingIsCopiedToAnyAddress) {
  char* const wild = Opaque(reinterpret_cast<char*>(8));
  EXPECT_EQ(memcpy(wild, "x", Opaque(std::size_t{0})), wild);
  EXPECT_EQ(memmove(wild, "x", Opaque(std::size_t{0})), wild);
  EXPECT_EQ(mempcpy(wild, "x", Opaque(std::size_t{0})), wild);
  EXPECT_EQ(memset(wild, 1, Opaque(std::size_t{0})), wild);
  EXPECT_EQ(strncpy(wild, "x", Opaque(std::size_t{0})), wild);
  // Also behind a block's end, and to one that was freed.
  char* block = NewBlock(64).release();
  EXPECT_EQ(memcpy(block + 64, "x", Opaque(std::size_t{0})), block + 64);
  std::free(Opaque(block));
  EXPECT_EQ(memset(Opaque(block), 1, Opaque(std::size_t{0})), block);
}

TEST(CopiesDeathTest, TheLengthThatTheCompilerKnewHolds) {
  char room[20];
  const std::size_t ten = Opaque(std::size_t{10});
  const char* const text = Opaque("0123456789");
  EXPECT_DEATH(__memcpy_chk(room, text, ten, 9), "buffer overflow detected");
  EXPECT_DEATH(__memmove_chk(room, text, ten, 9), "buffer overflow detected");
  EXPECT_DEATH(__mempcpy_chk(room, text, ten, 9), "buffer overflow detected");
  EXPECT_DEATH(__memset_chk(room, 0, ten, 9), "buffer overflow detected");
  EXPECT_DEATH(__strcpy_chk(room, text, ten), "buffer overflow detected");
  EXPECT_DEATH(__stpcpy_chk(room, text, ten), "buffer overflow detected");
  EXPECT_DEATH(__strncpy_chk(room, text, ten, 9), "buffer overflow detected");
  EXPECT_DEATH(__stpncpy_chk(room, text, ten, 9), "buffer overflow detected");
  strcpy(room, "ab");
  EXPECT_DEATH(__strcat_chk(room, text, 12), "buffer overflow detected");
  EXPECT_DEATH(__strncat_chk(room, text, 10, 12), "buffer overflow detected");
  __strncat_chk(room, text, 9, 12);
  EXPECT_STREQ(room, "ab012345678");
}

// --- Copies to live blocks, of any route and by any thread, are none's
// business. A report would end the process.

constexpr std::size_t kSlots = 64;
struct Shared {
  std::atomic<char*> slots[kSlots] = {};
};

std::size_t AnySize(std::mt19937& random) {
  switch (random() % 16) {
    case 0:
      return 66'000 + random() % 400'000;
    case 1:
      return 1025 + random() % 60'000;
    default:
      return 1 + random() % 1024;
  }
}

// The usable size may be written, whole and in part.
void CopyAround(char* block, std::mt19937& random) {
  const std::size_t bytes = malloc_usable_size(block);
  memset(block, static_cast<int>(random()), bytes);
  const std::size_t at = random() % bytes;
  char piece[512];
  memset(piece, 'p', sizeof piece);
  memcpy(block + at, piece, std::min(sizeof piece, bytes - at));
  memmove(block + at, block, bytes - at);
  memmove(block, block + at, bytes - at);
  mempcpy(mempcpy(block, piece, std::min<std::size_t>(bytes, 1)), piece, 0);
  block[bytes - 1] = 0;
  strncpy(block + at, "text", bytes - at);
  if (bytes >= 10) strcat(strcpy(block + bytes - 10, "some"), "words");
}

void CopyToLiveBlocks(Shared& shared, unsigned seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::atomic<char*>& slot = shared.slots[random() % kSlots];
    // From whichever thread has left it there.
    char* block = slot.exchange(nullptr, std::memory_order_acq_rel);
    if (block == nullptr) {
      block = static_cast<char*>(std::malloc(AnySize(random)));
    } else if (random() % 4 == 0) {
      std::free(block);
      continue;
    } else if (random() % 2 == 0) {
      block = static_cast<char*>(std::realloc(block, AnySize(random)));
    }
    CopyAround(block, random);
    std::free(slot.exchange(block, std::memory_order_acq_rel));
  }
}

TEST(CopiesTest, ToLiveBlocksOfAllThreads) {
  Shared shared;
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&shared, seed] { CopyToLiveBlocks(shared, seed); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::atomic<char*>& slot : shared.slots) std::free(slot.load());
}

}  // namespace
}  // namespace hakmem
