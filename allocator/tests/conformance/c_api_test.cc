// The C entry points: results, zero sizes, sizes that cannot be, errno.

#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kTooLarge[] = {
    static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) + 1,
    std::numeric_limits<std::size_t>::max() - 4096,
    std::numeric_limits<std::size_t>::max() - 7,
    std::numeric_limits<std::size_t>::max()};

// Any value that no call sets.
constexpr int kErrnoBefore = EXDEV;

TEST(CApi, ServesEverySizeOfEveryRoute) {
  std::vector<void*> blocks;
  for (const std::size_t size : kRouteSizes) {
    void* const block = malloc(Opaque(size));
    ASSERT_NE(block, nullptr) << size;
    EXPECT_TRUE(IsAlignedTo(block, alignof(std::max_align_t))) << size;
    EXPECT_GE(malloc_usable_size(block), size);
    FillBlock(block, size, static_cast<unsigned>(size));
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(BlockHolds(blocks[i], kRouteSizes[i],
                           static_cast<unsigned>(kRouteSizes[i])));
    free(blocks[i]);
  }
}

TEST(CApi, WholeUsableSizeMayBeWritten) {
  for (std::size_t size = 1; size < 70000; size += 1 + size / 16) {
    void* const block = malloc(Opaque(size));
    void* const neighbour = malloc(Opaque(size));
    ASSERT_NE(block, nullptr);
    ASSERT_NE(neighbour, nullptr);
    FillBlock(neighbour, size, 1);
    memset(block, 0xff, malloc_usable_size(block));
    EXPECT_TRUE(BlockHolds(neighbour, size, 1)) << size;
    free(block);
    free(neighbour);
  }
}

TEST(CApi, LiveBlocksDoNotOverlap) {
  std::set<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
  std::vector<void*> blocks;
  for (unsigned i = 0; i < 4000; ++i) {
    const std::size_t size = 1 + (i * 2654435761U) % 9000;
    void* const block = malloc(size);
    ASSERT_NE(block, nullptr);
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    ranges.emplace(begin, begin + size);
    blocks.push_back(block);
  }
  std::uintptr_t end = 0;
  for (const auto& [begin, range_end] : ranges) {
    EXPECT_GE(begin, end);
    end = range_end;
  }
  for (void* block : blocks) free(block);
}

TEST(CApi, ZeroBytesGiveAUniquePointer) {
  std::set<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    void* const block = malloc(Opaque(std::size_t{0}));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(blocks.insert(block).second);
  }
  for (void* block : blocks) free(block);
  void* const of_calloc = calloc(Opaque(std::size_t{0}), 8);
  EXPECT_NE(of_calloc, nullptr);
  free(of_calloc);
}

TEST(CApi, FreeOfNullDoesNothing) {
  errno = kErrnoBefore;
  free(nullptr);
  EXPECT_EQ(errno, kErrnoBefore);
}

TEST(CApi, FreeLeavesErrnoAlone) {
  for (const std::size_t size : kRouteSizes) {
    void* const block = malloc(size);
    ASSERT_NE(block, nullptr);
    errno = kErrnoBefore;
    free(block);
    EXPECT_EQ(errno, kErrnoBefore) << size;
  }
}

TEST(CApi, FreeLeavesErrnoAloneOnItsSlowPaths) {
  std::vector<void*> blocks(200000);
  for (void*& block : blocks) block = malloc(48);
  errno = kErrnoBefore;
  for (void* block : blocks) free(block);
  EXPECT_EQ(errno, kErrnoBefore);
}

TEST(CApi, TooLargeFailsWithEnomem) {
  for (const std::size_t size : kTooLarge) {
    errno = 0;
    EXPECT_EQ(malloc(Opaque(size)), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    errno = 0;
    EXPECT_EQ(calloc(Opaque(size), 1), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    errno = 0;
    EXPECT_EQ(aligned_alloc(64, Opaque(size)), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    errno = 0;
    EXPECT_EQ(memalign(64, Opaque(size)), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    errno = 0;
    EXPECT_EQ(valloc(Opaque(size)), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
    errno = 0;
    EXPECT_EQ(pvalloc(Opaque(size)), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM) << size;
  }
}

TEST(CApi, TooLargeIsNothingToGrowTo) {
  for (const std::size_t old_size : kRouteSizes) {
    void* const block = malloc(Opaque(old_size));
    ASSERT_NE(block, nullptr);
    FillBlock(block, old_size, 5);
    for (const std::size_t size : kTooLarge) {
      errno = 0;
      EXPECT_EQ(realloc(block, Opaque(size)), nullptr) << old_size;
      EXPECT_EQ(errno, ENOMEM) << size;
    }
    EXPECT_TRUE(BlockHolds(block, old_size, 5)) << old_size;
    free(block);
  }
}

TEST(CApi, CallocRejectsOverflow) {
  constexpr std::size_t kHalf = std::size_t{1} << 32;
  errno = 0;
  EXPECT_EQ(calloc(Opaque(kHalf), kHalf), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  // The product wraps round to 16.
  EXPECT_EQ(
      calloc(Opaque(std::numeric_limits<std::size_t>::max() / 16 + 2), 16),
      nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(CApi, UsableSizeOfNullIsZero) {
  EXPECT_EQ(malloc_usable_size(Opaque<void*>(nullptr)), 0U);
}

TEST(CApi, PvallocRoundsUpToPages) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : {std::size_t{1}, page - 1, page, page + 1}) {
    void* const block = pvalloc(size);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(IsAlignedTo(block, page));
    EXPECT_GE(malloc_usable_size(block), (size + page - 1) / page * page);
    free(block);
  }
}

TEST(CApi, FreeSizedTakesTheSizeAskedFor) {
  HAKMEM_ONLY_ON_HAKMEM();
  Hakmem().free_sized(nullptr, 10);
  Hakmem().free_aligned_sized(nullptr, 64, 10);
  for (std::size_t size = 0; size < 300000; size += 1 + size / 32) {
    Hakmem().free_sized(malloc(size), size);
    Hakmem().free_sized(calloc(1, size), size);
    Hakmem().free_sized(realloc(malloc(10), size + 1), size + 1);
    for (const std::size_t alignment : {16, 256, 4096, 1 << 20}) {
      Hakmem().free_aligned_sized(aligned_alloc(alignment, size), alignment,
                                  size);
    }
  }
}

}  // namespace
}  // namespace hakmem
