// mallinfo, malloc_info and their like, and hakmem.h.

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kBlocks = 64;

std::vector<void*> AllocateMany(std::size_t size) {
  std::vector<void*> blocks(kBlocks);
  for (void*& block : blocks) block = malloc(size);
  return blocks;
}

void FreeAll(const std::vector<void*>& blocks) {
  for (void* block : blocks) free(block);
}

hakmem_statistics Statistics() {
  hakmem_statistics statistics = {};
  EXPECT_EQ(Hakmem().get_statistics(&statistics, sizeof(statistics)),
            sizeof(statistics));
  return statistics;
}

TEST(Introspection, MallinfoSeesWhatIsInUse) {
  const struct mallinfo2 before = mallinfo2();
  const auto blocks = AllocateMany(kTestMiB);
  const struct mallinfo2 during = mallinfo2();
  EXPECT_GE(during.uordblks + during.hblkhd,
            before.uordblks + before.hblkhd + kBlocks * kTestMiB);
  FreeAll(blocks);
  const struct mallinfo2 after = mallinfo2();
  EXPECT_LT(after.uordblks + after.hblkhd,
            during.uordblks + during.hblkhd - kBlocks * kTestMiB / 2);
}

TEST(Introspection, MallinfoCountsLargeBlocksApart) {
  const struct mallinfo2 before = mallinfo2();
  void* const block = malloc(2048 * kTestMiB);
  ASSERT_NE(block, nullptr);
  const struct mallinfo2 during = mallinfo2();
  EXPECT_EQ(during.hblks, before.hblks + 1);
  EXPECT_GE(during.hblkhd, before.hblkhd + 2048 * kTestMiB);
  EXPECT_LT(during.uordblks, before.uordblks + kTestMiB);
  free(block);
  EXPECT_EQ(mallinfo2().hblks, before.hblks);
}

// A block of a slab is seen at once, and only while it is live.
TEST(Introspection, MallinfoCountsSmallBlocksExactly) {
  HAKMEM_ONLY_ON_HAKMEM();
  free(malloc(1000));
  const struct mallinfo2 before = mallinfo2();
  void* const block = malloc(1000);
  const struct mallinfo2 during = mallinfo2();
  free(block);
  const struct mallinfo2 after = mallinfo2();
  EXPECT_GE(during.uordblks, before.uordblks + 1000);
  EXPECT_LE(during.uordblks, before.uordblks + 2000);
  EXPECT_EQ(after.uordblks, before.uordblks);
  EXPECT_GT(after.ordblks, 0u);
}

TEST(Introspection, OldMallinfoHasTheSameFigures) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  const struct mallinfo2 wide = mallinfo2();
  EXPECT_EQ(static_cast<std::size_t>(narrow.arena), wide.arena);
  EXPECT_GE(narrow.uordblks, 0);
}

TEST(Introspection, TrimSaysWhetherItGaveMemoryBack) {
  HAKMEM_ONLY_ON_HAKMEM();
  FreeAll(AllocateMany(kTestMiB));
  EXPECT_EQ(malloc_trim(0), 1);
  EXPECT_EQ(malloc_trim(0), 0);
}

// Every page that no live block lies on, but what magazines hold.
TEST(Introspection, TrimGivesBackWhatLiesBetweenLiveBlocks) {
  constexpr std::size_t kSize = 1000;
  constexpr std::size_t kCount = 20'000;
  constexpr std::size_t kKeepEach = 100;
  const auto page_bytes = static_cast<std::size_t>(getpagesize());
  std::vector<char*> blocks(kCount);
  std::vector<std::uintptr_t> pages(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    blocks[i] = static_cast<char*>(malloc(kSize));
    ASSERT_NE(blocks[i], nullptr);
    FillBlock(blocks[i], kSize, 0);
    pages[i] = reinterpret_cast<std::uintptr_t>(blocks[i]) / page_bytes;
  }
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % kKeepEach != 0) free(blocks[i]);
  }
  EXPECT_EQ(malloc_trim(0), 1);
  std::size_t resident_pages = 0;
  for (const std::uintptr_t page : pages) {
    unsigned char resident = 0;
    // What was unmapped is not in memory, either.
    if (mincore(reinterpret_cast<void*>(page * page_bytes), page_bytes,
                &resident) == 0) {
      resident_pages += resident & 1;
    }
  }
  EXPECT_LT(resident_pages, 2 * kCount / kKeepEach + pages.size() / 10);
  for (std::size_t i = 0; i < kCount; i += kKeepEach) {
    EXPECT_TRUE(BlockHolds(blocks[i], kSize, 0));
    free(blocks[i]);
  }
}

TEST(Introspection, MalloptKnowsGlibcsParameters) {
  for (const int parameter :
       {M_MXFAST, M_NLBLKS, M_GRAIN, M_KEEP, M_TRIM_THRESHOLD, M_TOP_PAD,
        M_MMAP_THRESHOLD, M_MMAP_MAX, M_CHECK_ACTION, M_ARENA_TEST,
        M_ARENA_MAX}) {
    EXPECT_EQ(mallopt(parameter, 64), 1) << parameter;
  }
  // With another value glibc fills all that it hands out from now on.
  EXPECT_EQ(mallopt(M_PERTURB, 0), 1);
}

TEST(Introspection, MalloptRejectsOthers) {
  HAKMEM_ONLY_ON_HAKMEM();
  EXPECT_EQ(mallopt(12345, 1), 0);
}

TEST(Introspection, MallocInfoWritesXml) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const stream = open_memstream(&text, &length);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(malloc_info(0, stream), 0);
  fclose(stream);
  const std::string xml(text, length);
  free(text);
  EXPECT_EQ(xml.rfind("<malloc version=\"1\">\n", 0), 0U) << xml;
  EXPECT_EQ(xml.substr(xml.size() - 10), "</malloc>\n") << xml;
  // Well-formed: every start tag has its end tag, in order.
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z_]+)([^<>]*?)(/?)>");
  for (std::sregex_iterator it(xml.begin(), xml.end(), tag), end; it != end;
       ++it) {
    if ((*it)[4].length() != 0) continue;
    if ((*it)[1].length() == 0) {
      open.push_back((*it)[2]);
    } else {
      ASSERT_FALSE(open.empty()) << xml;
      EXPECT_EQ(open.back(), (*it)[2]);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty()) << xml;
}

// 500 live blocks of a class that nothing else here uses.
TEST(Introspection, MallocInfoCountsTheBlocksOfAClass) {
  HAKMEM_ONLY_ON_HAKMEM();
  std::vector<void*> blocks(500);
  for (void*& block : blocks) block = malloc(28'000);
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const stream = open_memstream(&text, &length);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(malloc_info(0, stream), 0);
  fclose(stream);
  const std::string xml(text, length);
  free(text);
  FreeAll(blocks);
  // 63 where a slab's guard page has 16 KiB.
  const std::regex slabs("<class block_bytes=\"28672\" slabs=\"(56|63)\"");
  EXPECT_TRUE(std::regex_search(xml, slabs)) << xml;
  EXPECT_NE(xml.find(" live_blocks=\"500\" live_bytes=\"14336000\""),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<ace_lock_waits>"), std::string::npos) << xml;
}

TEST(Introspection, MallocInfoSaysWhenItCannotWrite) {
  HAKMEM_ONLY_ON_HAKMEM();
  FILE* const full = fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  setvbuf(full, nullptr, _IONBF, 0);
  EXPECT_EQ(malloc_info(0, full), EIO);
  fclose(full);
}

TEST(Introspection, MallocInfoRejectsOptions) {
  EXPECT_EQ(malloc_info(Opaque(1), stderr), EINVAL);
}

TEST(Introspection, MallocStatsWritesToStderr) {
  testing::internal::CaptureStderr();
  malloc_stats();
  fflush(stderr);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(text.empty());
  if (!OnHakmem()) return;
  EXPECT_NE(text.find("\n  waits, ACE's lock "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  class     slabs "), std::string::npos) << text;
}

TEST(HakmemHeader, NamesVersionAndVariant) {
  HAKMEM_ONLY_ON_HAKMEM();
  EXPECT_TRUE(std::regex_match(Hakmem().version(),
                               std::regex("[0-9]+\\.[0-9]+\\.[0-9]+")));
  EXPECT_TRUE(std::regex_match(Hakmem().variant(),
                               std::regex("release|tracing|hardened|debug")));
}

TEST(HakmemHeader, CountsCallsAndBytesByRoute) {
  HAKMEM_ONLY_ON_HAKMEM();
  constexpr hakmem_route_statistics hakmem_statistics::* kRoutes[] = {
      &hakmem_statistics::tiny, &hakmem_statistics::pool,
      &hakmem_statistics::span, &hakmem_statistics::huge};
  for (unsigned route = 0; route < 4; ++route) {
    const hakmem_statistics before = Statistics();
    constexpr unsigned kCalls = 20;
    for (unsigned i = 0; i < kCalls; ++i) free(malloc(kOfEachRoute[route]));
    const hakmem_statistics after = Statistics();
    for (unsigned other = 0; other < 4; ++other) {
      const hakmem_route_statistics grown = {
          (after.*kRoutes[other]).allocations -
              (before.*kRoutes[other]).allocations,
          (after.*kRoutes[other]).bytes - (before.*kRoutes[other]).bytes};
      EXPECT_EQ(grown.allocations, other == route ? kCalls : 0U)
          << route << " " << other;
      EXPECT_GE(grown.bytes,
                other == route ? kCalls * kOfEachRoute[route] : 0U);
    }
  }
}

TEST(HakmemHeader, CountsFailuresAndRemoteFrees) {
  HAKMEM_ONLY_ON_HAKMEM();
  const hakmem_statistics before = Statistics();
  EXPECT_EQ(malloc(Opaque(~std::size_t{0})), nullptr);
  const auto blocks = AllocateMany(100);
  std::thread([&] { FreeAll(blocks); }).join();
  const hakmem_statistics after = Statistics();
  EXPECT_EQ(after.failures, before.failures + 1);
  EXPECT_GE(after.remote_frees, before.remote_frees + kBlocks);
}

TEST(HakmemHeader, MemoryFiguresFitTogether) {
  HAKMEM_ONLY_ON_HAKMEM();
  const auto blocks = AllocateMany(kTestMiB);
  const hakmem_statistics statistics = Statistics();
  EXPECT_GE(statistics.granted_bytes, kBlocks * kTestMiB);
  EXPECT_GE(statistics.mapped_bytes, statistics.granted_bytes);
  EXPECT_GE(statistics.peak_mapped_bytes, statistics.mapped_bytes);
  EXPECT_GT(statistics.map_calls, 0U);
  EXPECT_GT(statistics.heaps_created, 0U);
  FreeAll(blocks);
}

TEST(HakmemHeader, StatisticsOfOlderAndNewerCallers) {
  HAKMEM_ONLY_ON_HAKMEM();
  struct {
    hakmem_statistics known;
    std::uint64_t newer;
  } caller;
  memset(&caller, 0xff, sizeof(caller));
  EXPECT_EQ(Hakmem().get_statistics(&caller.known, sizeof(caller)),
            sizeof(hakmem_statistics));
  EXPECT_EQ(caller.newer, 0U);
  EXPECT_LT(caller.known.heaps_abandoned, ~std::uint64_t{0});

  memset(&caller, 0xff, sizeof(caller));
  constexpr std::size_t kOlder = sizeof(hakmem_route_statistics);
  Hakmem().get_statistics(&caller.known, kOlder);
  EXPECT_LT(caller.known.tiny.allocations, ~std::uint64_t{0});
  EXPECT_EQ(caller.known.pool.allocations, ~std::uint64_t{0});
}

TEST(HakmemHeader, WritesOpenMetrics) {
  HAKMEM_ONLY_ON_HAKMEM();
  char path[] = "/tmp/hakmem_metrics_XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  const hakmem_statistics before = Statistics();
  EXPECT_EQ(Hakmem().write_openmetrics(fd), 0);
  const hakmem_statistics after = Statistics();
  close(fd);
  // Nothing was allocated for it.
  EXPECT_EQ(memcmp(&after, &before, 4 * sizeof(hakmem_route_statistics)), 0);
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  unlink(path);
  EXPECT_TRUE(text.starts_with("# TYPE hakmem_allocations counter\n"));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  const std::string pid = "{pid=\"" + std::to_string(getpid()) + "\",program=";
  EXPECT_NE(text.find("hakmem_mapped_bytes" + pid), std::string::npos);
  EXPECT_NE(text.find("hakmem_resident_bytes" + pid), std::string::npos);
  errno = 0;
  EXPECT_EQ(Hakmem().write_openmetrics(fd), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(HakmemHeader, PurgeGivesCachedMemoryBack) {
  HAKMEM_ONLY_ON_HAKMEM();
  FreeAll(AllocateMany(kTestMiB));
  EXPECT_GT(Hakmem().purge(), 0U);
  EXPECT_EQ(Statistics().cached_bytes, 0U);
  EXPECT_EQ(Hakmem().purge(), 0U);
}

TEST(HakmemHeader, DISABLED_PrewarmMakesBlocksReady) {
  constexpr std::size_t kCount = 1000;
  std::vector<void*> blocks(kCount);
  EXPECT_EQ(Hakmem().prewarm(3000, kCount), kCount);
  EXPECT_EQ(Hakmem().prewarm(65537, 1), 0U);
  const std::uint64_t map_calls = Statistics().map_calls;
  for (void*& block : blocks) ASSERT_NE(block = malloc(3000), nullptr);
  EXPECT_EQ(Statistics().map_calls, map_calls);
  FreeAll(blocks);
  EXPECT_EQ(Hakmem().prewarm(65536, 10), 10U);
}

// Without the profile, which maps its tables with its first sample.
TEST(HakmemHeader, PrewarmMakesBlocksReady) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "HakmemHeader.DISABLED_PrewarmMakesBlocksReady",
                .environment = {"HAKMEM_PROFILE_BYTES=0"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

}  // namespace
}  // namespace hakmem
