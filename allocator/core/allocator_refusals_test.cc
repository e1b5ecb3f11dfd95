// The kernel refuses the n-th call, for every n: nothing is lost.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_workload.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr int kSteps = 180;
// Sanitizers are slow: they see one n in so many, each variant others.
constexpr std::uint64_t kStride =
    kThreadSanitizer ? 23 : (kAddressSanitizer ? 7 : 1);

template <typename V>
class AllocatorRefusalsTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;
  using Workload = TestWorkload<V::kConfig>;

  // Whether the workload asks for as many calls.
  bool SurvivesRefusalOf(std::uint64_t nth, Refuse refuse) {
    Test test;
    Workload workload(test);
    test.memory.RefuseCall(nth, ENOMEM, refuse);
    workload.Run(kSteps);
    const bool refused = test.memory.refused() != 0;
    nulls_ += workload.nulls();
    test.allocator->CheckInvariants();
    test.memory.RefuseNothing();
    workload.ServeEveryRoute();
    test.allocator->CheckInvariants();
    workload.Finish();
    test.allocator->CheckInvariants();
    EXPECT_EQ(test.allocator->upkeep().Snapshot().failures, workload.nulls());
    return refused;
  }
  void SurviveEachRefusal(Refuse refuse) {
    std::uint64_t nth = 1;
    while (SurvivesRefusalOf(nth, refuse)) nth += kStride;
    EXPECT_GT(nth, 50U);
  }

  std::uint64_t nulls_ = 0;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorRefusalsTest, Variants);

TYPED_TEST(AllocatorRefusalsTest, OneCall) {
  this->SurviveEachRefusal(Refuse::kOnce);
}

TYPED_TEST(AllocatorRefusalsTest, ThatCallAndAllThatFollow) {
  this->SurviveEachRefusal(Refuse::kFromThenOn);
  EXPECT_GT(this->nulls_, 0U);
}

// Under limits that are hit again and again, memory comes and goes.
TYPED_TEST(AllocatorRefusalsTest, WhatExceedsAByteLimit) {
  for (const std::size_t limit : {8 * kMiB, 24 * kMiB, 270 * kMiB}) {
    typename TestFixture::Test test;
    typename TestFixture::Workload workload(test, SeededChoices(limit));
    test.memory.LimitBytes(limit);
    workload.Run(1500);
    EXPECT_GT(workload.nulls(), 0U);
    EXPECT_LE(test.memory.mapped_bytes(), limit);
    test.allocator->CheckInvariants();
    test.memory.LimitBytes(~std::size_t{0});
    workload.ServeEveryRoute();
    workload.Finish();
    test.allocator->CheckInvariants();
  }
}

TYPED_TEST(AllocatorRefusalsTest, WhatExceedsALimitOnMappings) {
  typename TestFixture::Test test;
  typename TestFixture::Workload workload(test);
  test.memory.LimitMappings(12);
  workload.Run(3000);
  EXPECT_GT(test.memory.refused(), 0U);
  test.allocator->CheckInvariants();
  test.memory.LimitMappings(~std::size_t{0});
  workload.ServeEveryRoute();
  workload.Finish();
  test.allocator->CheckInvariants();
}

// What the heap gives back for the sake of its limit is enough, and then the
// kernel refuses: what is free is unmapped for that.
TYPED_TEST(AllocatorRefusalsTest, WhatExceedsTheHeapLimitAndThenAByteLimit) {
  HeapOptions options;
  options.heap_limit_bytes = 512 * kMiB;
  typename TestFixture::Test test(options);
  auto& allocator = *test.allocator;
  void* const freed = allocator.Allocate(test.self, 100 * kMiB);
  std::vector<void*> kept(1000);
  for (void*& block : kept) block = allocator.Allocate(test.self, 1000);
  for (void* block : kept) allocator.Free(test.self, block);
  allocator.Free(test.self, freed);
  const std::size_t bytes = options.heap_limit_bytes -
                            allocator.upkeep().Snapshot().granted_bytes +
                            kUnitBytes;
  test.memory.LimitBytes(test.memory.mapped_bytes() + bytes - 50 * kMiB);
  void* const block = allocator.Allocate(test.self, bytes);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(test.LastFailure().reason, FailureReason::kMapFail);
  allocator.Free(test.self, block);
}

TYPED_TEST(AllocatorRefusalsTest, WhatExceedsTheHeapLimit) {
  HeapOptions options;
  options.heap_limit_bytes = 30 * kMiB;
  typename TestFixture::Test test(options);
  typename TestFixture::Workload workload(test);
  workload.Run(1500);
  EXPECT_GT(workload.nulls(), 0U);
  EXPECT_EQ(test.memory.refused(), 0U);
  const Statistics held = test.allocator->upkeep().Snapshot();
  EXPECT_LE(held.granted_bytes + held.cached_bytes, 30 * kMiB);
  test.allocator->CheckInvariants();
  workload.Finish();
}

}  // namespace
}  // namespace hakmem
