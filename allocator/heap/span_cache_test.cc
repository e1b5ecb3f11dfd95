#include "allocator/heap/span_cache.h"

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "allocator/ace/test_ace.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kMostUnits = 32;

class SpanCacheTest : public testing::Test {
 protected:
  SpanCacheTest() { ace_.Start(HeapOptions()); }
  ~SpanCacheTest() override {
    cache_.CheckInvariants(ace_.region().coarse(), kMostUnits);
    ace_.CheckInvariants();
    cache_.ReleaseAll(ace_);
    EXPECT_EQ(Granted(), granted_);
  }

  UnitIndex Grant(std::uint32_t units) {
    EXPECT_EQ(cache_.Take(kMostUnits),
              kNoUnit);  // none is kept that is so long
    return GrantToOther(units);
  }
  UnitIndex GrantToOther(std::uint32_t units) {
    return ace_.GrantSpan(units, kUnitBytes).first;
  }
  void Put(UnitIndex first, std::uint32_t units) {
    cache_.Put(ace_, kMostUnits, first, units);
  }
  std::uint64_t Granted() { return ace_.Snapshot().granted_bytes / kUnitBytes; }

  FakeVirtualMemory memory_;
  WholeAce ace_{memory_};
  SpanCache cache_;
  std::uint64_t granted_ = 0;  // units that the test still has
};

TEST_F(SpanCacheTest, GivesBackWhatItWasGivenByLength) {
  const UnitIndex two = Grant(2);
  const UnitIndex three = Grant(3);
  Put(two, 2);
  Put(three, 3);
  EXPECT_EQ(cache_.Take(4), kNoUnit);
  EXPECT_EQ(cache_.Take(3), three);
  EXPECT_EQ(cache_.Take(3), kNoUnit);
  EXPECT_EQ(cache_.Take(2), two);
  EXPECT_EQ(cache_.units(), 0U);
  granted_ = 5;
}

TEST_F(SpanCacheTest, KeepsAtMostItsShare) {
  std::vector<UnitIndex> spans;
  for (int i = 0; i < 20; ++i) spans.push_back(Grant(2));
  for (const UnitIndex span : spans) Put(span, 2);
  EXPECT_EQ(cache_.units(), 18U);  // nine places
  EXPECT_EQ(Granted(), 18U);
  // A long one makes others go.
  Put(Grant(16), 16);
  EXPECT_LE(cache_.units(), kMostUnits);
  Put(Grant(16), 16);
  EXPECT_LE(cache_.units(), kMostUnits);
  EXPECT_GE(cache_.units(), 16U);
  EXPECT_EQ(Granted(), cache_.units());
  // The newest is there.
  EXPECT_NE(cache_.Take(16), kNoUnit);
  granted_ = 16;
}

TEST_F(SpanCacheTest, KeepsNoMoreThanItsOwnerAskedFor) {
  for (int i = 0; i < 4; ++i) Put(GrantToOther(3), 3);
  EXPECT_EQ(cache_.units(), 0U);
  EXPECT_EQ(cache_.Take(3), kNoUnit);
  for (int i = 0; i < 5; ++i) Put(GrantToOther(3), 3);
  EXPECT_EQ(cache_.units(), 3U);
  EXPECT_NE(cache_.Take(3), kNoUnit);
  granted_ = 3;
}

TEST_F(SpanCacheTest, SeveralOfOneLength) {
  std::set<UnitIndex> spans;
  for (int i = 0; i < 4; ++i) spans.insert(Grant(3));
  for (const UnitIndex span : spans) Put(span, 3);
  EXPECT_TRUE(spans.contains(cache_.TakeFirst(3)));
  EXPECT_EQ(cache_.TakeFirst(3), kNoUnit);
  std::set<UnitIndex> others;
  for (int i = 0; i < 3; ++i) others.insert(cache_.Take(3));
  EXPECT_EQ(others.size(), 3U);
  EXPECT_FALSE(others.contains(kNoUnit));
  EXPECT_EQ(cache_.Take(3), kNoUnit);
  granted_ = 12;
}

// Where a span was put once, and taken, the next one goes without being told.
TEST_F(SpanCacheTest, TellsOfASpanThatOthersCouldNotKnow) {
  const UnitIndex span = Grant(2);
  EXPECT_FALSE(cache_.TryPut(span, 2));
  Put(span, 2);
  EXPECT_FALSE(cache_.TryPut(span, 2));  // the place is taken
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cache_.TakeFirst(2), span);
    ASSERT_TRUE(cache_.TryPut(span, 2));
  }
  // Whoever looked for memory knows of nothing here from now on.
  ASSERT_EQ(cache_.TakeFirst(2), span);
  cache_.ReleaseAll(ace_);
  EXPECT_FALSE(cache_.TryPut(span, 2));
  Put(span, 2);
  EXPECT_EQ(cache_.TakeFirst(2), span);
  granted_ = 2;
}

TEST_F(SpanCacheTest, PutsNoMoreThanItsShareWithoutARelease) {
  UnitIndex spans[3];
  for (UnitIndex& span : spans) {
    span = Grant(14);
    Put(span, 14);
    ASSERT_EQ(cache_.Take(14), span);
  }
  const UnitIndex other = Grant(5);
  Put(other, 5);
  ASSERT_EQ(cache_.Take(5), other);
  Put(spans[0], 14);
  Put(spans[1], 14);
  EXPECT_FALSE(cache_.TryPut(other, 5));
  Put(other, 5);
  EXPECT_LE(cache_.units(), kMostUnits);
  EXPECT_EQ(cache_.Take(5), other);
  granted_ = 14 + 5;
}

// Whatever they release between two steps of this thread is room, too.
TEST_F(SpanCacheTest, OthersGiveBackWhileRoomIsMade) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done.load(std::memory_order_relaxed)) cache_.ReleaseAll(ace_);
  });
  for (int i = 0; i < 100'000; ++i) {
    for (const std::uint32_t units : {16, 15, 14}) Put(Grant(units), units);
  }
  done.store(true, std::memory_order_relaxed);
  other.join();
  EXPECT_LE(cache_.units(), kMostUnits);
}

// Nor is it kept any more when its owner looks whether it is nobody's.
TEST_F(SpanCacheTest, OthersUseWhatTheyGaveBackDuringACheck) {
  const Zone& zone = ace_.region().coarse();
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done.load(std::memory_order_relaxed)) {
      cache_.ReleaseAll(ace_);
      UnitIndex spans[8];
      for (UnitIndex& span : spans) {
        span = GrantToOther(2);
        zone.unit_record(span).store(1, std::memory_order_relaxed);
      }
      for (const UnitIndex span : spans) {
        zone.unit_record(span).store(0, std::memory_order_relaxed);
        ace_.ReleaseSpan(span, 2);
      }
    }
  });
  for (int i = 0; i < 30'000; ++i) {
    for (int k = 0; k < 8; ++k) Put(Grant(2), 2);
    for (int k = 0; k < 10; ++k) cache_.CheckInvariants(zone, kMostUnits);
  }
  done.store(true, std::memory_order_relaxed);
  other.join();
}

TEST_F(SpanCacheTest, KeepsNoLongSpans) {
  EXPECT_FALSE(cache_.TryPut(0, SpanCache::kMaxCachedUnits + 1));
  Put(Grant(SpanCache::kMaxCachedUnits + 1), SpanCache::kMaxCachedUnits + 1);
  EXPECT_EQ(cache_.units(), 0U);
  EXPECT_EQ(Granted(), 0U);
}

TEST_F(SpanCacheTest, WhatNobodyWantedBetweenTwoTrimsGoesBack) {
  Put(Grant(2), 2);
  Put(Grant(3), 3);
  cache_.Trim(ace_);
  EXPECT_EQ(cache_.units(), 5U);
  const UnitIndex used = cache_.Take(2);
  ASSERT_NE(used, kNoUnit);
  Put(used, 2);
  cache_.Trim(ace_);
  EXPECT_EQ(cache_.units(), 2U);
  EXPECT_EQ(Granted(), 2U);
}

TEST(SpanCacheLimit, FollowsWhatAThreadMayKeep) {
  HeapOptions options;
  EXPECT_EQ(SpanCache::MostUnits(options) * kUnitBytes,
            SpanCache::kMaxCachedBytes);
  options.depot_bytes = 4 * kUnitBytes;
  EXPECT_EQ(SpanCache::MostUnits(options), 1U);
  options.depot_bytes = 0;
  EXPECT_EQ(SpanCache::MostUnits(options), 0U);
  options = {};
  options.decay_ms = 0;
  EXPECT_EQ(SpanCache::MostUnits(options), 0U);
}

}  // namespace
}  // namespace hakmem
