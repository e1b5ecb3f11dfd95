// realloc and reallocarray: contents, null, zero, failure.

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(Realloc, KeepsContentsBetweenAllRoutes) {
  for (const std::size_t from : kRouteSizes) {
    for (const std::size_t to : kRouteSizes) {
      void* const block = malloc(from);
      ASSERT_NE(block, nullptr);
      const std::size_t kept = std::min(from, to);
      FillBlock(block, kept, 5);
      void* const moved = realloc(block, to);
      ASSERT_NE(moved, nullptr);
      EXPECT_TRUE(BlockHolds(moved, kept, 5)) << from << " to " << to;
      EXPECT_GE(malloc_usable_size(moved), to);
      FillBlock(moved, to, 6);
      EXPECT_TRUE(BlockHolds(moved, to, 6)) << from << " to " << to;
      free(moved);
    }
  }
}

TEST(Realloc, GrowsAndShrinksByteByByte) {
  char* block = static_cast<char*>(malloc(1));
  for (std::size_t size = 1; size < 5000; ++size) {
    block = static_cast<char*>(realloc(block, size));
    ASSERT_NE(block, nullptr);
    block[size - 1] = static_cast<char>(size);
  }
  for (std::size_t size = 4999; size > 0; --size) {
    ASSERT_EQ(block[size - 1], static_cast<char>(size));
    block = static_cast<char*>(realloc(block, size));
    ASSERT_NE(block, nullptr);
  }
  free(block);
}

TEST(Realloc, KeepsContentsOfAlignedBlocks) {
  for (const std::size_t alignment : {64, 4096, 1 << 16, 4 << 20}) {
    for (const std::size_t size : {100, 5000, 200000}) {
      void* block = aligned_alloc(alignment, size);
      ASSERT_NE(block, nullptr);
      FillBlock(block, size, 7);
      block = realloc(block, size * 3);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(BlockHolds(block, size, 7)) << alignment << " " << size;
      free(block);
    }
  }
}

TEST(Realloc, OfAnotherThreadsBlockKeepsContents) {
  for (const std::size_t size : kOfEachRoute) {
    void* block = malloc(size);
    ASSERT_NE(block, nullptr);
    FillBlock(block, size, 9);
    std::thread([&] { block = realloc(block, size + size / 2); }).join();
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(BlockHolds(block, size, 9)) << size;
    free(block);
  }
}

TEST(Realloc, OfNullAllocates) {
  void* const block = realloc(Opaque<void*>(nullptr), 100);
  ASSERT_NE(block, nullptr);
  FillBlock(block, 100, 1);
  free(block);
  void* const empty = realloc(Opaque<void*>(nullptr), Opaque(std::size_t{0}));
  EXPECT_NE(empty, nullptr);
  free(empty);
}

TEST(Realloc, ToZeroFrees) {
  for (const std::size_t size : kOfEachRoute) {
    void* const block = malloc(size);
    ASSERT_NE(block, nullptr);
    errno = EXDEV;
    EXPECT_EQ(realloc(block, Opaque(std::size_t{0})), nullptr);
    EXPECT_EQ(errno, EXDEV);
  }
}

TEST(Realloc, ToZeroReturnsTheMemory) {
  HAKMEM_ONLY_ON_HAKMEM();
  hakmem_statistics before = {};
  hakmem_statistics after = {};
  Hakmem().get_statistics(&before, sizeof(before));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(realloc(malloc(kTestMiB), Opaque(std::size_t{0})), nullptr);
  }
  Hakmem().get_statistics(&after, sizeof(after));
  EXPECT_LT(after.granted_bytes, before.granted_bytes + 100 * kTestMiB);
}

TEST(Realloc, FailureLeavesTheBlock) {
  for (const std::size_t size : kOfEachRoute) {
    void* const block = malloc(size);
    ASSERT_NE(block, nullptr);
    FillBlock(block, size, 4);
    errno = 0;
    EXPECT_EQ(
        realloc(block, Opaque(std::numeric_limits<std::size_t>::max() / 2 + 1)),
        nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_TRUE(BlockHolds(block, size, 4)) << size;
    free(block);
  }
}

TEST(Realloc, ReallocarrayMultiplies) {
  void* block = reallocarray(nullptr, 100, 30);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(malloc_usable_size(block), 3000U);
  FillBlock(block, 3000, 2);
  block = reallocarray(block, 1000, 30);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(BlockHolds(block, 3000, 2));
  EXPECT_EQ(reallocarray(block, Opaque(std::size_t{0}), 30), nullptr);
}

TEST(Realloc, ReallocarrayOverflowLeavesTheBlock) {
  constexpr std::size_t kHalf = std::size_t{1} << 32;
  void* const block = malloc(500);
  ASSERT_NE(block, nullptr);
  FillBlock(block, 500, 8);
  errno = 0;
  EXPECT_EQ(reallocarray(block, Opaque(kHalf), kHalf), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(BlockHolds(block, 500, 8));
  free(block);
}

constexpr std::size_t kPageBytes = 4096;

// Pages that are not there yet, and that a userfaultfd supplies.
class SuppliedPages {
 public:
  bool Start() {
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
    if (fd_ < 0 || ioctl(fd_, UFFDIO_API, &api) != 0) return false;
    std::thread([fd = fd_] { Supply(fd); }).detach();
    return true;
  }
  bool Register(char* begin, std::size_t bytes) const {
    uffdio_register range = {};
    range.range = {reinterpret_cast<std::uintptr_t>(begin), bytes};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    return madvise(begin, bytes, MADV_DONTNEED) == 0 &&
           ioctl(fd_, UFFDIO_REGISTER, &range) == 0;
  }

 private:
  static void Supply(int fd) {
    static std::vector<char> page(kPageBytes, 'x');
    uffd_msg message;
    while (read(fd, &message, sizeof(message)) == sizeof(message)) {
      uffdio_copy copy = {};
      copy.dst = message.arg.pagefault.address & ~(kPageBytes - 1);
      copy.src = reinterpret_cast<std::uintptr_t>(page.data());
      copy.len = kPageBytes;
      ioctl(fd, UFFDIO_COPY, &copy);
    }
  }

  int fd_ = -1;
};

// In a child, as the thread that supplies never ends.
TEST(Realloc, KeepsWhatAUserfaultfdSupplies) {
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPageBytes))
    GTEST_SKIP() << "other pages";
  const auto work = [] {
    SuppliedPages supplied;
    if (!supplied.Start()) _exit(0);
    for (const std::size_t bytes : {300'000UL, 3'000'000UL, 30'000'000UL}) {
      char* const block = static_cast<char*>(malloc(bytes));
      memset(block, 0, bytes);
      const auto at = reinterpret_cast<std::uintptr_t>(block);
      const std::size_t first = kPageBytes - at % kPageBytes;
      if (!supplied.Register(block + first,
                             bytes / 8 * 7 / kPageBytes * kPageBytes))
        _exit(0);
      void* const neighbour = malloc(bytes);
      char* const moved = static_cast<char*>(realloc(block, 3 * bytes));
      if (moved[first + bytes / 2] != 'x') _exit(1);
      free(moved);
      free(neighbour);
    }
    _exit(0);
  };
  EXPECT_TRUE(ExitedWithZero(RunInFork(work)));
}

}  // namespace
}  // namespace hakmem
