// The aligned entry points: every alignment up to and beyond 2 MiB, and those
// that are not alignments.

#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSizes[] = {0,     1,      64,     1000,   4096,
                                  30000, 100000, 300000, 3000000};
constexpr std::size_t kLargestTested = 64 * kTestMiB;

void ExpectAligned(void* block, std::size_t alignment, std::size_t size) {
  ASSERT_NE(block, nullptr) << alignment << " " << size;
  EXPECT_TRUE(IsAlignedTo(block, alignment)) << alignment << " " << size;
  EXPECT_GE(malloc_usable_size(block), size);
  FillBlock(block, size, 3);
  EXPECT_TRUE(BlockHolds(block, size, 3));
}

TEST(Alignment, PosixMemalignServesEveryPowerOfTwo) {
  for (std::size_t alignment = sizeof(void*); alignment <= kLargestTested;
       alignment *= 2) {
    for (const std::size_t size : kSizes) {
      void* block = nullptr;
      ASSERT_EQ(posix_memalign(&block, alignment, size), 0);
      ExpectAligned(block, alignment, size);
      free(block);
    }
  }
}

TEST(Alignment, AlignedAllocServesEveryPowerOfTwo) {
  for (std::size_t alignment = 1; alignment <= kLargestTested; alignment *= 2) {
    for (const std::size_t size : kSizes) {
      void* const block = aligned_alloc(alignment, size);
      ExpectAligned(block, alignment, size);
      free(block);
    }
  }
}

TEST(Alignment, ManyAlignedBlocksLiveTogether) {
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (unsigned i = 0; i < 2000; ++i) {
    const std::size_t alignment = std::size_t{16} << (i % 12);
    const std::size_t size = 1 + i * 37 % 5000;
    void* const block = memalign(alignment, size);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(IsAlignedTo(block, alignment));
    FillBlock(block, size, i);
    blocks.emplace_back(block, size);
  }
  for (unsigned i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(BlockHolds(blocks[i].first, blocks[i].second, i));
    free(blocks[i].first);
  }
}

TEST(Alignment, VallocAndPvallocGivePages) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : kSizes) {
    void* const block = valloc(size);
    ExpectAligned(block, page, size);
    free(block);
    void* const pages = pvalloc(size);
    ExpectAligned(pages, page, size);
    free(pages);
  }
}

TEST(Alignment, MemalignRaisesToAPowerOfTwo) {
  for (const std::size_t alignment : {0, 1, 3, 17, 48, 100, 4097, 3000000}) {
    std::size_t raised = 1;
    while (raised < alignment) raised *= 2;
    void* const block = memalign(Opaque(alignment), 100);
    ExpectAligned(block, raised, 100);
    free(block);
  }
}

TEST(Alignment, MemalignRejectsWhatCannotBeRaised) {
  errno = 0;
  EXPECT_EQ(
      memalign(Opaque(std::numeric_limits<std::size_t>::max() / 2 + 2), 1),
      nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Alignment, HugeAlignmentFailsWithEnomem) {
  constexpr std::size_t kAlignment = std::size_t{1} << 62;
  errno = 0;
  EXPECT_EQ(aligned_alloc(Opaque(kAlignment), 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* block = &block;
  EXPECT_EQ(posix_memalign(&block, Opaque(kAlignment), 1), ENOMEM);
}

TEST(Alignment, PosixMemalignRejectsBadAlignments) {
  for (const std::size_t alignment : {0, 1, 2, 4, 3, 7, 24, 100, 4097}) {
    void* untouched = &untouched;
    errno = EXDEV;
    EXPECT_EQ(posix_memalign(&untouched, Opaque(alignment), 100), EINVAL)
        << alignment;
    EXPECT_EQ(untouched, &untouched);
    EXPECT_TRUE(errno == EINVAL || !OnHakmem()) << errno;
  }
}

TEST(Alignment, PosixMemalignOutOfMemorySetsErrnoAndLeavesTheResultAlone) {
  void* untouched = &untouched;
  errno = EXDEV;
  EXPECT_EQ(
      posix_memalign(&untouched, 64,
                     Opaque(std::numeric_limits<std::size_t>::max() / 2 + 1)),
      ENOMEM);
  EXPECT_EQ(untouched, &untouched);
  // POSIX leaves errno open; programs print it by perror.
  EXPECT_TRUE(errno == ENOMEM || !OnHakmem()) << errno;
}

TEST(Alignment, AlignedAllocRejectsBadAlignments) {
  HAKMEM_ONLY_ON_HAKMEM();  // glibc does so from version 2.38 on
  for (const std::size_t alignment : {0, 3, 24, 100, 4097}) {
    errno = 0;
    EXPECT_EQ(aligned_alloc(Opaque(alignment), 100), nullptr) << alignment;
    EXPECT_EQ(errno, EINVAL);
  }
}

}  // namespace
}  // namespace hakmem
