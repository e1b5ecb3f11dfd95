// calloc gives zeros, also where memory has been used before.

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using namespace std::string_view_literals;

bool IsZero(const void* block, std::size_t size) {
  const auto* const bytes = static_cast<const char*>(block);
  return size == 0 ||
         (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

// Dirties `count` blocks of `size` bytes each and frees them.
void Dirty(std::size_t size, std::size_t count) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = malloc(size);
    ASSERT_NE(block, nullptr);
    memset(block, 0xa5, malloc_usable_size(block));
  }
  for (void* block : blocks) free(block);
}

void ExpectZeros(std::size_t size, std::size_t count) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = calloc(1, size);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(IsZero(block, size)) << size;
    memset(block, 0x5a, size);
  }
  for (void* block : blocks) free(block);
}

// How many blocks of a size are tried: more than caches hold, in bounds.
std::size_t CountFor(std::size_t size) {
  return size > 8 * kTestMiB ? 2
         : size > kTestMiB   ? 8
                             : 3000000 / (size + 1000);
}

constexpr std::size_t kSizes[] = {1,      16,      24,      100,     512,
                                  1024,   1025,    2000,    5000,    16384,
                                  40000,  65536,   65537,   100000,  200000,
                                  500000, 1 << 20, 3 << 20, 20 << 20};

TEST(Zeroing, FreshMemoryIsZero) {
  for (const std::size_t size : kSizes) ExpectZeros(size, CountFor(size));
}

TEST(Zeroing, ReusedBlocksAreZero) {
  for (const std::size_t size : kSizes) {
    for (int round = 0; round < 3; ++round) {
      Dirty(size, CountFor(size));
      ExpectZeros(size, CountFor(size));
    }
  }
}

TEST(Zeroing, MemoryOfOtherSizesIsZero) {
  for (const std::size_t dirty : kSizes) {
    Dirty(dirty, CountFor(dirty));
    for (const std::size_t size : kSizes) ExpectZeros(size, 3);
  }
}

TEST(Zeroing, PurgedMemoryIsZero) {
  for (const std::size_t size : kSizes) {
    Dirty(size, CountFor(size));
    malloc_trim(0);
    ExpectZeros(size, CountFor(size));
  }
}

TEST(Zeroing, OneHugeBlockAfterAnother) {
  constexpr std::size_t kSize = 300 * kTestMiB;
  for (int round = 0; round < 3; ++round) {
    char* const block = static_cast<char*>(calloc(3, kSize / 3));
    ASSERT_NE(block, nullptr);
    for (std::size_t at = 0; at < kSize; at += 4096) {
      ASSERT_EQ(block[at], 0) << at;
      block[at] = 1;
    }
    free(block);
  }
}

TEST(Zeroing, BlocksFreedByAnotherThreadAreZero) {
  for (const std::size_t size : {64, 3000, 200000}) {
    std::vector<void*> blocks(1000);
    for (void*& block : blocks) {
      block = malloc(size);
      ASSERT_NE(block, nullptr);
      memset(block, 0xa5, size);
    }
    std::thread([&] {
      for (void* block : blocks) free(block);
    }).join();
    ExpectZeros(size, 1000);
  }
}

TEST(Zeroing, DISABLED_LeavesUntouchedPagesAlone) {
  constexpr std::size_t kSize = 40000;
  constexpr std::size_t kCount = 1000;
  // Who clears what is freed needs to write nothing for calloc.
  const bool clears = OnHakmem() && (Hakmem().variant() == "hardened"sv ||
                                     Hakmem().variant() == "debug"sv);
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (clears && page_bytes > kSize / 2) {
    GTEST_SKIP() << "there is a canary in each page";
  }
  malloc_trim(0);
  const std::size_t before = ResidentBytes();
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks(kCount);
    for (void*& block : blocks) {
      block = Opaque(clears && round == 1 ? calloc(1, kSize) : malloc(kSize));
      ASSERT_NE(block, nullptr);
    }
    for (void* block : blocks) free(block);
    EXPECT_LT(ResidentBytes(), before + kSize * kCount / 2) << round;
  }
}

// What was never written is zero, and needs no memory to become so. A huge page
// is touched as a whole.
TEST(Zeroing, UntouchedPagesAreLeftAlone) {
  const ChildResult child =
      RunChild({.test = "Zeroing.DISABLED_LeavesUntouchedPagesAlone",
                .environment = {"HAKMEM_HUGE_PAGES=off"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST(Zeroing, GrownByReallocThenFreed) {
  for (const std::size_t size : kSizes) {
    void* block = calloc(1, size);
    ASSERT_NE(block, nullptr);
    block = realloc(block, size * 2);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(IsZero(block, size)) << size;
    memset(block, 0xff, size * 2);
    free(block);
    ExpectZeros(size * 2, 3);
  }
}

}  // namespace
}  // namespace hakmem
