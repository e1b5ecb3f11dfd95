// Running out: the process gets NULL and ENOMEM, loses nothing, and goes on
// when memory comes back. Each test runs in a fresh process under a limit.

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kLimitBytes = 512 * kTestMiB;

struct Link {
  Link* next;
};

// Allocates blocks until there is no more; returns how many bytes that were.
std::size_t AllocateAll(std::size_t size, Link*& all) {
  std::size_t bytes = 0;
  errno = 0;
  while (auto* const link = static_cast<Link*>(malloc(size))) {
    link->next = all;
    all = link;
    bytes += size;
    errno = 0;
  }
  return bytes;
}

void FreeAll(Link*& all) {
  while (all != nullptr) {
    Link* const next = all->next;
    free(all);
    all = next;
  }
}

// A child's checks speak by exit, because a report would allocate.
#define HAKMEM_REQUIRE(condition)                                        \
  if (!(condition)) {                                                    \
    dprintf(STDERR_FILENO, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, \
            #condition, errno);                                          \
    _exit(1);                                                            \
  }

// How many fifths of what release gets out of a limit the variant gets, at
// least. Hardened spends addresses on guard pages, on canaries, which make
// round sizes blocks of the next class, and on what one class has used; debug
// also memory on records, 16 bytes for each 32 of small blocks.
std::size_t FifthsOfRelease() {
  if (Hakmem().variant == nullptr) return 5;
  const std::string variant = Hakmem().variant();
  if (variant == "debug") return 2;
  return variant == "hardened" ? 3 : 5;
}

// Fills the limit with blocks of `size`, `rounds` times over; each time at
// least `percent` of it is had, or the variant's part of that.
void FillToTheLimit(std::size_t size, std::size_t percent = 90,
                    int rounds = 3) {
  const std::size_t fifths = FifthsOfRelease();
  if (fifths != 5) percent = percent / 5 * fifths;
  for (int round = 0; round < rounds; ++round) {
    Link* all = nullptr;
    const std::size_t bytes = AllocateAll(size, all);
    HAKMEM_REQUIRE(errno == ENOMEM);
    if (bytes < kLimitBytes / 100 * percent) {
      dprintf(STDERR_FILENO,
              "round %d: only %zu of %zu bytes in blocks of %zu\n", round,
              bytes, kLimitBytes, size);
      _exit(1);
    }
    // Other ways of asking fail alike.
    errno = 0;
    HAKMEM_REQUIRE(calloc(10, kTestMiB) == nullptr && errno == ENOMEM);
    errno = 0;
    HAKMEM_REQUIRE(realloc(nullptr, 10 * kTestMiB) == nullptr &&
                   errno == ENOMEM);
    void* result = nullptr;
    HAKMEM_REQUIRE(posix_memalign(&result, 64, 10 * kTestMiB) == ENOMEM);
    HAKMEM_REQUIRE(all != nullptr && realloc(all, 100 * kTestMiB) == nullptr);
    FreeAll(all);
    void* const again = malloc(100 * kTestMiB);
    HAKMEM_REQUIRE(again != nullptr);
    free(again);
  }
}

// The heap profile's tables take a part, too.
TEST(Limits, DISABLED_FillWithSmall) { FillToTheLimit(256, 89, 2); }
TEST(Limits, DISABLED_FillWithPages) { FillToTheLimit(4096); }
TEST(Limits, DISABLED_FillWithPool) { FillToTheLimit(48 * kTestKiB); }
TEST(Limits, DISABLED_FillWithSpans) { FillToTheLimit(kTestMiB); }
TEST(Limits, DISABLED_FillWithLargeSpans) { FillToTheLimit(10 * kTestMiB); }

// What was used for one size serves another; only the tables that a size needed
// stay.
TEST(Limits, DISABLED_FillWithOneSizeAfterAnother) {
  for (const std::size_t size :
       {kTestKiB / 4, 4 * kTestKiB, 48 * kTestKiB, kTestMiB, kTestKiB / 4}) {
    // Five blocks of 48 KiB take a slab of 256 KiB.
    FillToTheLimit(size, 83, 1);
  }
}

TEST(Limits, DISABLED_FillFromThreads) {
  // The thread's stack, and what the threads before it left behind, are no part
  // of it. Asked for before, as that allocates.
  const std::size_t least = kLimitBytes / 10 * (FifthsOfRelease() == 5 ? 8 : 5);
  for (int round = 0; round < 5; ++round) {
    std::thread([least] {
      Link* all = nullptr;
      const std::size_t bytes = AllocateAll(10000, all);
      HAKMEM_REQUIRE(bytes >= least);
      FreeAll(all);
    }).join();
  }
}

void ExpectPassesUnder(int resource, const char* test) {
  const ChildResult child = RunChild(
      {.test = test, .before_exec = [=] {
         const rlimit limit = {kLimitBytes, kLimitBytes};
         if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
           _exit(126);
         }
       }});
  EXPECT_TRUE(ExitedWithZero(child.wait_status))
      << test << ": status " << child.wait_status << "\n"
      << child.output;
}

class UnderLimit : public testing::TestWithParam<const char*> {};

TEST_P(UnderLimit, OfAddressSpace) { ExpectPassesUnder(RLIMIT_AS, GetParam()); }
TEST_P(UnderLimit, OfData) { ExpectPassesUnder(RLIMIT_DATA, GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Fills, UnderLimit,
    testing::Values("Limits.DISABLED_FillWithSmall",
                    "Limits.DISABLED_FillWithPages",
                    "Limits.DISABLED_FillWithPool",
                    "Limits.DISABLED_FillWithSpans",
                    "Limits.DISABLED_FillWithLargeSpans",
                    "Limits.DISABLED_FillWithOneSizeAfterAnother",
                    "Limits.DISABLED_FillFromThreads"),
    [](const auto& parameter) {
      const std::string test = parameter.param;
      return test.substr(test.rfind('_') + 1);
    });

TEST(Limits, NewHandlerMakesRoom) {
  const ChildResult child = RunChild(
      {.test = "Operators.DISABLED_HandlerMakesRoom", .before_exec = [] {
         const rlimit limit = {1024 * kTestMiB, 1024 * kTestMiB};
         if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(126);
       }});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

// --- vm.overcommit_memory ----------------------------------------------------

// The kernel would grant it, and kill the program that fills it.
TEST(Limits, NothingLongerThanAllOfMemory) {
  int mode = 1;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> mode;
  if (mode != 0) GTEST_SKIP() << "vm.overcommit_memory is not 0";
  struct sysinfo info;
  ASSERT_EQ(sysinfo(&info), 0);
  const std::size_t all =
      (std::size_t{info.totalram} + info.totalswap) * info.mem_unit;
  errno = 0;
  EXPECT_EQ(malloc(all + all / 16), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(calloc(all / 15, 16), nullptr);
  void* block = malloc(all - all / 16);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(realloc(block, 3 * all), nullptr);
  // All blocks together may be longer, and a child has them, too: glibc's are
  // one mapping, and it gets no child.
  void* const another = malloc(all - all / 16);
  EXPECT_NE(another, nullptr);
  if (OnHakmem()) EXPECT_TRUE(ExitedWithZero(RunInFork([] {})));
  free(another);
  free(block);
}

// --- vm.max_map_count --------------------------------------------------------

// Leaves the process `left` mappings short of the kernel's limit. Neighbouring
// pages of different protection are mappings of their own.
void UseUpMappings(std::size_t left, char*& pages, std::size_t& bytes) {
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  HAKMEM_REQUIRE(limit > 1000);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes = 2 * limit * page;
  void* const mapped = mmap(nullptr, bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HAKMEM_REQUIRE(mapped != MAP_FAILED);
  pages = static_cast<char*>(mapped);
  std::size_t made = 0;
  while (mprotect(pages + 2 * made * page, page, PROT_READ) == 0) ++made;
  HAKMEM_REQUIRE(errno == ENOMEM && made > left / 2);
  for (std::size_t i = 1; i <= left / 2; ++i) {
    HAKMEM_REQUIRE(mprotect(pages + 2 * (made - i) * page, page, PROT_NONE) ==
                   0);
  }
}

constexpr std::size_t kMappedSizes[] = {100, 5000, 60000, 200000, 3000000};

// Allocates and frees in an order that leaves holes; NULL only with ENOMEM.
void AllocateWithHoles() {
  constexpr std::size_t kBlocks = 150;
  for (const std::size_t size : kMappedSizes) {
    void* blocks[kBlocks] = {};
    for (int round = 0; round < 2; ++round) {
      for (void*& block : blocks) {
        errno = 0;
        if (block == nullptr) block = malloc(size);
        HAKMEM_REQUIRE(block != nullptr || errno == ENOMEM);
        if (block != nullptr) FillBlock(block, size, 1);
      }
      for (std::size_t i = 0; i < kBlocks; i += 2) {
        HAKMEM_REQUIRE(blocks[i] == nullptr || BlockHolds(blocks[i], size, 1));
        free(blocks[i]);
        blocks[i] = nullptr;
      }
      malloc_trim(0);
    }
    for (void* block : blocks) free(block);
  }
}

TEST(Limits, DISABLED_NearMaxMapCount) {
  for (const std::size_t left : {100, 8, 0}) {
    char* pages = nullptr;
    std::size_t bytes = 0;
    UseUpMappings(left, pages, bytes);
    AllocateWithHoles();
    HAKMEM_REQUIRE(munmap(pages, bytes) == 0);
    // And now there are mappings again.
    for (const std::size_t size : kMappedSizes) {
      void* const block = malloc(size);
      HAKMEM_REQUIRE(block != nullptr);
      free(block);
    }
    AllocateWithHoles();
  }
}

TEST(Limits, NearlyNoMappingsLeft) {
  const ChildResult child = RunChild({"Limits.DISABLED_NearMaxMapCount"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status))
      << "status " << child.wait_status << "\n"
      << child.output;
}

// KiB that the process has locked.
long LockedKib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kib = -1;
  while (status >> word && word != "VmLck:") continue;
  status >> kib;
  return kib;
}

// Blocks that a program locks and frees without munlock count against
// RLIMIT_MEMLOCK no longer than they have memory.
TEST(Limits, DISABLED_FreedWhileLocked) {
  const long before = LockedKib();
  for (const std::size_t size : {100, 5000, 200000}) {
    void* blocks[20];
    for (void*& block : blocks) {
      block = malloc(size);
      FillBlock(block, size, 1);
      if (mlock(block, size) == 0) continue;
      std::printf("nothing may be locked here\n");
      _exit(0);
    }
    for (void* block : blocks) free(block);
  }
  HAKMEM_REQUIRE(LockedKib() > before + 3000);
  malloc_trim(0);
  // Pages that a live block shares stay.
  HAKMEM_REQUIRE(LockedKib() <= before + 64);
}

TEST(Limits, FreedMemoryIsLockedNoMore) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild({"Limits.DISABLED_FreedWhileLocked"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

}  // namespace
}  // namespace hakmem
