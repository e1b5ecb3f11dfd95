#include "allocator/call_trace/call_trace_encoder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "allocator/call_trace/call_trace_format.h"

namespace hakmem {
namespace {

constexpr std::uint8_t kMalloc =
    call_trace::kAllocate + static_cast<std::uint8_t>(Call::kMalloc);

class CallTraceEncoderTest : public testing::Test {
 protected:
  CallTraceEncoderTest() : encoder_(std::make_unique<TraceEncoder>()) {
    encoder_->StartChunk();
  }

  std::vector<unsigned> Encode(const TraceEvent& event) {
    std::uint8_t bytes[call_trace::kMaxEventBytes];
    return {bytes, encoder_->Encode(event, bytes)};
  }

  std::unique_ptr<TraceEncoder> encoder_;
};

// The examples of docs/trace_format.md.
TEST_F(CallTraceEncoderTest, BytesAreAsDocumented) {
  EXPECT_EQ(Encode({.operation = kMalloc,
                    .time_ns = 1000,
                    .address = 0x1000,
                    .size_bytes = 100}),
            (std::vector<unsigned>{0x05, 0xd0, 0x0f, 0x80, 0x04, 0x64}));
  EXPECT_EQ(Encode({.operation = kMalloc,
                    .time_ns = 1063,
                    .address = 0xff0,
                    .size_bytes = 200,
                    .alignment_bytes = 64}),
            (std::vector<unsigned>{0x25, 0x7e, 0x01, 0xc8, 0x01, 0x06}));
  EXPECT_EQ(
      Encode(
          {.operation = call_trace::kFree, .time_ns = 1064, .address = 0x1000}),
      (std::vector<unsigned>{0x01, 0x02, 0x02}));
  EXPECT_EQ(Encode({.operation = call_trace::kReallocFrom,
                    .time_ns = 1070,
                    .address = 0xff0}),
            (std::vector<unsigned>{0x02, 0x0c, 0x01}));
  EXPECT_EQ(Encode({.operation = call_trace::kAllocate +
                                 static_cast<std::uint8_t>(Call::kRealloc),
                    .linked = true,
                    .time_ns = 1080,
                    .address = 0x2000,
                    .size_bytes = 1}),
            (std::vector<unsigned>{0x47, 0x14, 0x82, 0x04, 0x01}));
  EXPECT_EQ(
      Encode({.operation = call_trace::kFailure,
              .time_ns = 1081,
              .size_bytes = 127,
              .reason = FailureReason::kMapFail,
              .detail = FailureDetail::kRlimitAs,
              .disposition = Disposition::kReturnedNull,
              .call = Call::kCalloc,
              .attempts = 2}),
      (std::vector<unsigned>{0x03, 0x02, 0x7f, 0x02, 0x03, 0x0a, 0x01, 0x02}));
}

TEST_F(CallTraceEncoderTest, TimesMayGoBack) {
  Encode({.operation = call_trace::kFree, .time_ns = 100, .address = 16});
  EXPECT_EQ(
      Encode({.operation = call_trace::kFree, .time_ns = 99, .address = 16}),
      (std::vector<unsigned>{0x01, 0x01, 0x00}));
}

TEST_F(CallTraceEncoderTest, AStackIsWrittenOnceAChunk) {
  const std::uintptr_t stack[] = {0x40, 0x41, 0x30};
  const TraceEvent event = {.operation = call_trace::kFree,
                            .time_ns = 0,
                            .address = 0,
                            .stack = stack};
  const std::vector<unsigned> whole = {0x81, 0, 0, 0, 3, 0x80, 0x01, 2, 0x21};
  const std::vector<unsigned> known = {0x81, 0, 0, 0};
  EXPECT_EQ(Encode(event), whole);
  EXPECT_EQ(Encode(event), known);
  TraceEvent other = event;
  other.stack = std::span(stack).first(2);
  EXPECT_EQ(Encode(other),
            (std::vector<unsigned>{0x81, 0, 0, 1, 2, 0x80, 0x01, 2}));
  EXPECT_EQ(Encode(event), known);
  encoder_->StartChunk();
  EXPECT_EQ(Encode(event), whole);
}

TEST_F(CallTraceEncoderTest, AChunkDoesNotDependOnWhatWasBefore) {
  Encode({.operation = kMalloc, .time_ns = 1 << 20, .address = 0x7f0000000000});
  encoder_->StartChunk();
  EXPECT_EQ(
      Encode({.operation = call_trace::kFree, .time_ns = 1, .address = 0x10}),
      (std::vector<unsigned>{0x01, 0x02, 0x02}));
}

// CE2, with the largest of everything.
TEST_F(CallTraceEncoderTest, NoEventIsLongerThanTheBound) {
  std::uintptr_t stack[call_trace::kMaxFrames];
  for (unsigned i = 0; i < call_trace::kMaxFrames; ++i) {
    stack[i] = i % 2 == 0 ? std::numeric_limits<std::uintptr_t>::max() / 2 : 0;
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint8_t operation : {kMalloc, call_trace::kFailure}) {
    const auto bytes = Encode({.operation = operation,
                               .linked = true,
                               .time_ns = kMost / 2,
                               .address = kMost,
                               .size_bytes = kMost,
                               .alignment_bytes = std::uint64_t{1} << 63,
                               .attempts = ~0U,
                               .stack = stack});
    EXPECT_LE(bytes.size(), call_trace::kMaxEventBytes);
    EXPECT_GT(bytes.size(), 32U * 9);
    encoder_->StartChunk();
  }
}

}  // namespace
}  // namespace hakmem
