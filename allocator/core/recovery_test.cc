#include "allocator/core/recovery.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/test_variant.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class RecoveryTest : public testing::Test {};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(RecoveryTest, Variants);

// The block that a request would have got is longer where it has a canary.
TYPED_TEST(RecoveryTest, SaysWhichBlockItWouldHaveBeen) {
  constexpr std::size_t kSlack =
      TestedAllocator<TypeParam::kConfig>::kSlackBytes;
  const auto describe = [&](std::size_t size, std::size_t alignment) {
    FailureEvent event;
    DescribeRequest({.size_bytes = size, .alignment_bytes = alignment}, kSlack,
                    event);
    return event;
  };
  const auto expect = [&](std::size_t size, Route route, std::size_t bytes) {
    EXPECT_EQ(describe(size, kMinAlignmentBytes).route, route) << size;
    EXPECT_EQ(describe(size, kMinAlignmentBytes).class_bytes, bytes) << size;
  };
  expect(1, Route::kTiny, kSlack == 0 ? 16 : 32);
  expect(64, Route::kTiny, kSlack == 0 ? 64 : 80);
  expect(1024 - kSlack, Route::kTiny, 1024);
  expect(1025 - kSlack, Route::kPool, 1280);
  expect(kMaxPoolBytes - kSlack, Route::kPool, kMaxPoolBytes);
  expect(kMaxPoolBytes + 1 - kSlack, Route::kSpan, 0);
  expect(kMaxSpanBytes - kSlack, Route::kSpan, 0);
  expect(kMaxSpanBytes + 1 - kSlack, Route::kHuge, 0);
  expect(~std::size_t{0}, Route::kHuge, 0);
  // No power of two.
  for (const std::size_t alignment : {33U, 32769U, 49153U, 65535U}) {
    EXPECT_EQ(describe(65'500, alignment).class_bytes, kMaxPoolBytes);
  }
}

// However often the call would be tried again.
TYPED_TEST(RecoveryTest, ABlockFreedMeanwhileIsReportedOnce) {
  TestAllocator<TypeParam::kConfig> test;
  auto& allocator = *test.allocator;
  void* const block = allocator.Allocate(test.self, 70'000);
  ASSERT_NE(block, nullptr);
  test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  int calls = 0;
  test_handler = [&](const FailureEvent&) {
    if (++calls == 1) allocator.Free(test.self, block);
    return true;
  };
  SetOnMisuse(OnMisuse::kLog);
  const std::uint64_t before = MisuseCount();
  EXPECT_EQ(allocator.Reallocate(test.self, block, 300 * kMiB), nullptr);
  SetOnMisuse(OnMisuse::kAbort);
  test_handler = nullptr;
  EXPECT_EQ(MisuseCount(), before + 1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(test.failures(), 1U);
  EXPECT_EQ(test.LastFailure().disposition, Disposition::kReturnedNull);
}

}  // namespace
}  // namespace hakmem
