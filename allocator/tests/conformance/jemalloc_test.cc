// jemalloc's calls beside malloc's, which hakmem serves: sizes, alignments,
// zeros, what may be told to sdallocx.

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

// Linked in, these are found by the linker; preloaded, by dlsym.
extern "C" {
__attribute__((weak)) void* mallocx(std::size_t, int);
__attribute__((weak)) void* rallocx(void*, std::size_t, int);
__attribute__((weak)) std::size_t xallocx(void*, std::size_t, std::size_t, int);
__attribute__((weak)) std::size_t sallocx(const void*, int);
__attribute__((weak)) void dallocx(void*, int);
__attribute__((weak)) void sdallocx(void*, std::size_t, int);
__attribute__((weak)) std::size_t nallocx(std::size_t, int);
}

namespace hakmem {
namespace {

constexpr int kZero = 0x40;
// Arena 5 and cache 3, and no cache.
constexpr int kArena = (5 + 1) << 20;
constexpr int kCache = (3 + 2) << 8;
constexpr int kNoCache = (-1 + 2) << 8;
constexpr std::size_t kTooLarge =
    std::numeric_limits<std::size_t>::max() / 2 + 1;
constexpr std::size_t kSizes[] = {1,    8,     100,    1000,   1024,   3000,
                                  5000, 20000, 100000, 200000, 3 << 20};

constexpr int LgAlign(int lg) { return lg; }

template <typename Function>
void Find(Function& found, Function linked, const char* name) {
  found = linked != nullptr
              ? linked
              : reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

class Jemalloc : public testing::Test {
 protected:
  void SetUp() override {
    HAKMEM_ONLY_ON_HAKMEM();
    Find(mallocx_, &mallocx, "mallocx");
    Find(rallocx_, &rallocx, "rallocx");
    Find(xallocx_, &xallocx, "xallocx");
    Find(sallocx_, &sallocx, "sallocx");
    Find(dallocx_, &dallocx, "dallocx");
    Find(sdallocx_, &sdallocx, "sdallocx");
    Find(nallocx_, &nallocx, "nallocx");
  }

  // Whether the bytes from one offset to another are zero.
  static bool IsZero(const void* block, std::size_t from, std::size_t to) {
    static const char kZeros[4096] = {};
    for (; from < to; from += std::min(to - from, sizeof(kZeros))) {
      if (memcmp(static_cast<const char*>(block) + from, kZeros,
                 std::min(to - from, sizeof(kZeros))) != 0) {
        return false;
      }
    }
    return true;
  }
  // What is free now is not zero.
  static void SoilFreeBlocks(std::size_t size) {
    void* blocks[4];
    for (void*& block : blocks) {
      block = malloc(size);
      memset(block, 0xff, size);
    }
    for (void* block : blocks) free(Opaque(block));
  }

  decltype(&mallocx) mallocx_;
  decltype(&rallocx) rallocx_;
  decltype(&xallocx) xallocx_;
  decltype(&sallocx) sallocx_;
  decltype(&dallocx) dallocx_;
  decltype(&sdallocx) sdallocx_;
  decltype(&nallocx) nallocx_;
};

TEST_F(Jemalloc, ServesEverySizeAndAlignment) {
  for (const std::size_t size : kSizes) {
    for (const int lg : {0, 3, 4, 5, 6, 12, 16, 21, 22}) {
      for (const int more : {0, kZero, kArena | kCache, kNoCache}) {
        const int flags = LgAlign(lg) | more;
        void* const block = mallocx_(size, flags);
        ASSERT_NE(block, nullptr) << size << " " << flags;
        EXPECT_TRUE(IsAlignedTo(block, std::size_t{1} << lg)) << size;
        EXPECT_GE(nallocx_(size, flags), size);
        EXPECT_GE(sallocx_(block, flags), nallocx_(size, flags));
        FillBlock(block, size, 3);
        EXPECT_TRUE(BlockHolds(block, size, 3));
        dallocx_(block, flags);
      }
    }
  }
}

TEST_F(Jemalloc, ZerosReachToTheUsableSize) {
  for (const std::size_t size : {1, 100, 1000, 5000, 20000, 200000}) {
    for (const int lg : {0, 7, 17}) {
      SoilFreeBlocks(size);
      const int flags = LgAlign(lg) | kZero;
      void* block = mallocx_(size, flags);
      ASSERT_NE(block, nullptr);
      std::size_t usable = sallocx_(block, flags);
      EXPECT_TRUE(IsZero(block, 0, usable)) << size << " " << lg;
      FillBlock(block, usable, 4);
      for (const std::size_t grown : {size + 1, size * 3, size * 10}) {
        SoilFreeBlocks(grown);
        block = rallocx_(block, grown, flags);
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(IsAlignedTo(block, std::size_t{1} << lg));
        EXPECT_TRUE(IsZero(block, usable, sallocx_(block, flags))) << grown;
        EXPECT_TRUE(BlockHolds(block, std::min<std::size_t>(usable, 4000), 4))
            << size << " " << grown;
        usable = sallocx_(block, flags);
        FillBlock(block, usable, 4);
      }
      sdallocx_(block, size * 10, flags);
    }
  }
}

TEST_F(Jemalloc, RallocxKeepsContentsAndAlignment) {
  for (const std::size_t from : kSizes) {
    for (const std::size_t to : kSizes) {
      for (const int lg : {0, 6, 14}) {
        void* const block = mallocx_(from, LgAlign(lg));
        ASSERT_NE(block, nullptr);
        const std::size_t kept = std::min(from, to);
        FillBlock(block, kept, 5);
        void* const moved = rallocx_(block, to, LgAlign(lg) | kNoCache);
        ASSERT_NE(moved, nullptr);
        EXPECT_TRUE(IsAlignedTo(moved, std::size_t{1} << lg));
        EXPECT_TRUE(BlockHolds(moved, kept, 5)) << from << " to " << to;
        sdallocx_(moved, to, LgAlign(lg));
      }
    }
  }
}

// One of another class that is aligned by chance is not what was asked for.
TEST_F(Jemalloc, RallocxOfABlockThatIsAlignedByChance) {
  void* blocks[64];
  for (void*& block : blocks) block = mallocx_(100, 0);
  for (void*& block : blocks) {
    block = rallocx_(block, 100, LgAlign(7));
    ASSERT_TRUE(IsAlignedTo(block, 128));
  }
  for (void* block : blocks) sdallocx_(block, 100, LgAlign(7));
}

// A block of another route than such a request's is not what was asked for,
// though it be as long; nor is one that a shrink left longer.
TEST_F(Jemalloc, RallocxOfABlockThatIsAsLongByChance) {
  for (const int before : {LgAlign(17), LgAlign(22)}) {
    for (const std::size_t size : {40000, 60000, 65536}) {
      for (int lg = 4; lg <= 17; ++lg) {
        void* block = mallocx_(size, before);
        FillBlock(block, size, 5);
        block = rallocx_(block, size, LgAlign(lg));
        ASSERT_TRUE(IsAlignedTo(block, std::size_t{1} << lg));
        EXPECT_TRUE(BlockHolds(block, size, 5));
        sdallocx_(block, size, LgAlign(lg));
      }
    }
  }
  for (int lg = 4; lg <= 17; ++lg) {
    void* block = rallocx_(mallocx_(200000, 0), 65000, 0);
    block = rallocx_(block, 62000, LgAlign(lg));
    sdallocx_(block, 62000, LgAlign(lg));
  }
}

// No size is that of a request which cannot be served.
TEST_F(Jemalloc, RallocxOfABlockOfNoBytes) {
  for (const int flags : {0, kZero, LgAlign(6), LgAlign(17)}) {
    for (const std::size_t alignment : {16, 4096, 1 << 17}) {
      void* block = aligned_alloc(alignment, 0);
      ASSERT_NE(block, nullptr);
      errno = 0;
      ASSERT_EQ(rallocx_(block, Opaque(kTooLarge), flags), nullptr) << flags;
      EXPECT_EQ(errno, ENOMEM);
      block = rallocx_(block, 100, flags);
      ASSERT_NE(block, nullptr);
      FillBlock(block, 100, 5);
      EXPECT_TRUE(BlockHolds(block, 100, 5));
      sdallocx_(block, 100, flags);
    }
  }
}

TEST_F(Jemalloc, WhatCannotBeServedLeavesTheBlock) {
  for (const int flags : {0, LgAlign(8), kZero}) {
    void* const block = mallocx_(100, flags);
    FillBlock(block, 100, 6);
    errno = 0;
    EXPECT_EQ(rallocx_(block, Opaque(kTooLarge), flags), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(mallocx_(Opaque(kTooLarge), flags), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(nallocx_(Opaque(kTooLarge), flags), 0u);
    EXPECT_TRUE(BlockHolds(block, 100, 6));
    sdallocx_(block, 100, flags);
  }
  EXPECT_EQ(mallocx_(10, LgAlign(62)), nullptr);
  EXPECT_EQ(nallocx_(10, LgAlign(62)), 0u);
}

TEST_F(Jemalloc, FailuresAreToldByName) {
  hakmem_failure_event event;
  const auto last = [&] {
    EXPECT_GT(Hakmem().failure_events(&event, 1, sizeof(event)), 0u);
    return std::string(event.call);
  };
  EXPECT_EQ(mallocx_(Opaque(kTooLarge), 0), nullptr);
  EXPECT_EQ(last(), "mallocx");
  EXPECT_EQ(mallocx_(Opaque(kTooLarge), kZero), nullptr);
  EXPECT_EQ(last(), "mallocx");
  EXPECT_EQ(event.size_bytes, kTooLarge);
  void* const block = mallocx_(100, 0);
  EXPECT_EQ(rallocx_(block, Opaque(kTooLarge), 0), nullptr);
  EXPECT_EQ(last(), "rallocx");
  EXPECT_EQ(rallocx_(block, Opaque(kTooLarge), LgAlign(6)), nullptr);
  EXPECT_EQ(last(), "rallocx");
  EXPECT_EQ(event.alignment_bytes, 64u);
  dallocx_(block, 0);
}

TEST_F(Jemalloc, RallocxOfNoBytesFreesNothing) {
  void* const block = rallocx_(mallocx_(100, 0), 0, 0);
  ASSERT_NE(block, nullptr);
  dallocx_(block, 0);
}

TEST_F(Jemalloc, XallocxTellsTheSizeThatTheBlockHas) {
  for (const std::size_t size : kSizes) {
    void* const block = mallocx_(size, 0);
    FillBlock(block, size, 7);
    EXPECT_EQ(xallocx_(block, size, 0, 0), sallocx_(block, 0));
    EXPECT_GE(sallocx_(block, 0), size);
    for (const std::size_t other : {size + 1, size + 2, size * 10}) {
      const std::size_t before = sallocx_(block, 0);
      const std::size_t after = xallocx_(block, other, 3, kZero);
      EXPECT_EQ(after, sallocx_(block, 0));
      EXPECT_GE(after, std::min(before, other));
      EXPECT_TRUE(IsZero(block, before, after));
      EXPECT_TRUE(BlockHolds(block, size, 7));
    }
    const std::size_t before = sallocx_(block, 0);
    EXPECT_EQ(xallocx_(block, kTooLarge, kTooLarge, 0), before);
    // No block but one that is aligned so stays.
    if (!IsAlignedTo(block, std::size_t{1} << 30)) {
      EXPECT_EQ(xallocx_(block, before + 1, 0, LgAlign(30)), before);
    }
    EXPECT_TRUE(BlockHolds(block, size, 7));
    sdallocx_(block, sallocx_(block, 0), 0);
  }
}

TEST_F(Jemalloc, SdallocxTakesSizesUpToTheUsableOne) {
  for (std::size_t size = 1; size < (8u << 20); size += 1 + size / 5) {
    for (const int lg : {0, 6, 13, 21}) {
      const int flags = LgAlign(lg);
      const std::size_t most = nallocx_(size, flags);
      for (const std::size_t told : {size, (size + most) / 2, most}) {
        sdallocx_(mallocx_(size, flags), told, flags | kNoCache);
      }
      void* const block = mallocx_(size, flags);
      sdallocx_(block, sallocx_(block, flags), flags);
    }
    sdallocx_(malloc(size), size, 0);
    sdallocx_(calloc(size, 1), nallocx_(size, 0), 0);
  }
}

// Those that stay where they are may have a larger usable size than others that
// were asked for so.
TEST_F(Jemalloc, SdallocxTakesTheSizesOfShrunkBlocks) {
  for (const std::size_t size : {100, 1000, 5000, 20000, 200000, 3 << 20}) {
    const std::size_t shrunk = size * 3 / 5;
    for (int told = 0; told < 4; ++told) {
      void* const block = realloc(malloc(size), shrunk);
      ASSERT_NE(block, nullptr);
      const std::size_t sizes[] = {shrunk, nallocx_(shrunk, 0),
                                   sallocx_(block, 0),
                                   (shrunk + sallocx_(block, 0)) / 2};
      sdallocx_(block, sizes[told], 0);
    }
  }
}

TEST_F(Jemalloc, ShrunkBlocksGrowAsLongAsTheyAreTold) {
  for (const std::size_t size : {2000, 5000, 20000, 65536}) {
    void* block = malloc(size);
    std::fill_n(static_cast<char*>(block), size, '\1');
    block = realloc(block, size * 3 / 5);
    FillBlock(block, size * 3 / 5, 7);
    const std::size_t shrunk = sallocx_(block, 0);
    const std::size_t most = xallocx_(block, size, 0, kZero);
    EXPECT_EQ(most, sallocx_(block, 0));
    EXPECT_TRUE(IsZero(block, shrunk, most));
    block = rallocx_(block, size, kZero);
    EXPECT_GE(sallocx_(block, 0), size);
    EXPECT_TRUE(BlockHolds(block, size * 3 / 5, 7));
    EXPECT_TRUE(IsZero(block, shrunk, sallocx_(block, 0)));
    sdallocx_(block, size, 0);
  }
}

TEST_F(Jemalloc, OtherThreadsMayFree) {
  for (const std::size_t size : kSizes) {
    void* const block = mallocx_(size, kCache);
    std::thread([&] { sdallocx_(block, size, kCache); }).join();
    void* const other = mallocx_(size, kZero);
    std::thread([&] { dallocx_(other, kArena); }).join();
  }
}

}  // namespace
}  // namespace hakmem
