#include "allocator/core/call_result.h"

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "allocator/base/units.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr Refusal kRefusal = {.reason = FailureReason::kMapFail,
                              .detail = FailureDetail::kRlimitMemlock,
                              .call = VmCall::kProtect,
                              .error_number = ENOTRECOVERABLE,
                              .bytes = 9 * kMiB};

void ExpectRefusal(const Refusal& refusal) {
  EXPECT_EQ(refusal.reason, kRefusal.reason);
  EXPECT_EQ(refusal.detail, kRefusal.detail);
  EXPECT_EQ(refusal.call, kRefusal.call);
  EXPECT_EQ(refusal.error_number, kRefusal.error_number);
  EXPECT_EQ(refusal.bytes, kRefusal.bytes);
}

// Two registers, by the calling convention.
static_assert(sizeof(CallResult) == 16);
static_assert(std::is_trivially_copyable_v<CallResult>);

TEST(CallResultTest, PlainExactlyWhenServed) {
  int block = 0;
  EXPECT_TRUE(Served(&block).outcome.plain());
  EXPECT_TRUE(CallResult().outcome.plain());
  EXPECT_FALSE(Sampled(&block).outcome.plain());
  EXPECT_FALSE(Refused({}).outcome.plain());
  EXPECT_FALSE(Misused().outcome.plain());
  EXPECT_EQ(Served(&block).outcome.kind(), Outcome::Kind::kServed);
  EXPECT_EQ(Sampled(&block).outcome.kind(), Outcome::Kind::kSampled);
  EXPECT_EQ(Misused().outcome.kind(), Outcome::Kind::kMisuse);
  EXPECT_EQ(Misused().block, nullptr);
}

TEST(CallResultTest, TellsOfTheRefusal) {
  const CallResult refused = Refused(kRefusal);
  EXPECT_EQ(refused.block, nullptr);
  EXPECT_EQ(refused.outcome.kind(), Outcome::Kind::kRefused);
  ExpectRefusal(refused.outcome.refusal());
}

TEST(CallResultTest, ADetourIsToldWhereItIsReported) {
  int block = 0;
  const CallResult told = ServedOrDetoured<kTracing>(&block, kRefusal);
  EXPECT_EQ(told.block, &block);
  EXPECT_EQ(told.outcome.kind(), Outcome::Kind::kDetoured);
  ExpectRefusal(told.outcome.refusal());
  EXPECT_TRUE(ServedOrDetoured<kRelease>(&block, kRefusal).outcome.plain());
  EXPECT_TRUE(ServedOrDetoured<kTracing>(&block, {}).outcome.plain());
}

TEST(CallResultTest, BytesAreRoundedUpToPages) {
  const auto bytes_of = [](std::uint64_t bytes) {
    return Refused({.reason = FailureReason::kExhaustion, .bytes = bytes})
        .outcome.refusal()
        .bytes;
  };
  EXPECT_EQ(bytes_of(0), 0u);
  EXPECT_EQ(bytes_of(1), 4 * kKiB);
  EXPECT_EQ(bytes_of(4 * kKiB), 4 * kKiB);
  EXPECT_EQ(bytes_of(8192 * kGiB), 8192 * kGiB);
}

// What fits into the bits of an outcome.
TEST(CallResultTest, EveryDetailFits) {
  for (unsigned i = 0; i < kFailureDetailCount; ++i) {
    const auto detail = static_cast<FailureDetail>(i);
    EXPECT_EQ(Refused({.detail = detail}).outcome.refusal().detail, detail);
  }
}

TEST(RequestTest, TotalBytes) {
  EXPECT_EQ((Request{.size_bytes = 7}).TotalBytes(), 7u);
  EXPECT_EQ((Request{.size_bytes = 7, .count = 3}).TotalBytes(), 21u);
  EXPECT_EQ((Request{.size_bytes = SIZE_MAX, .count = 3}).TotalBytes(),
            SIZE_MAX);
}

}  // namespace
}  // namespace hakmem
