#include "allocator/call_trace/call_trace_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "allocator/call_trace/call_trace_format.h"

namespace hakmem {
namespace {

using Result = TraceRing::Result;

TraceEvent FreeAt(std::uint64_t number) {
  return {.operation = call_trace::kFree,
          .time_ns = number,
          .address = number << call_trace::kAddressShift};
}

// What a consumer makes of the pieces: each event of FreeAt, in order.
class Checker {
 public:
  void Take(const TraceRing::Piece& piece) {
    if (piece.offset == 0) time_ = address_ = 0;
    at_ = piece.bytes;
    const std::uint8_t* const end = piece.bytes + piece.length;
    while (at_ < end && *at_ != call_trace::kEndOfChunk) {
      ASSERT_EQ(*at_++, call_trace::kFree);
      time_ += call_trace::UnZigZag(Varint());
      address_ += call_trace::UnZigZag(Varint());
      ASSERT_EQ(time_, address_);
      ASSERT_GT(time_, last_);
      gaps_ += time_ - last_ - 1;
      last_ = time_;
      ++events_;
    }
    ASSERT_LE(at_, end);  // Q2
  }

  void Drain(TraceRing& ring) {
    TraceRing::Piece piece;
    while (ring.Peek(piece)) {
      Take(piece);
      ring.Consume(piece);
    }
  }

  std::uint64_t events() const { return events_; }
  std::uint64_t gaps() const { return gaps_; }

 private:
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = *at_++;
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  const std::uint8_t* at_ = nullptr;
  std::uint64_t time_ = 0;
  std::uint64_t address_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t gaps_ = 0;
};

class CallTraceRingTest : public testing::Test {
 protected:
  CallTraceRingTest() : ring_(std::make_unique<TraceRing>()) { ring_->Reset(); }
  std::unique_ptr<TraceRing> ring_;
};

TEST_F(CallTraceRingTest, IsEmptyAtFirst) {
  TraceRing::Piece piece;
  EXPECT_FALSE(ring_->Peek(piece));
}

TEST_F(CallTraceRingTest, GivesBackWhatWasRecorded) {
  Checker checker;
  std::uint64_t number = 0;
  // Some times around, drained at odd places.
  for (int round = 0; round < 4000; ++round) {
    for (int i = 0; i < 1 + round % 700; ++i) {
      ASSERT_NE(ring_->Record(FreeAt(++number)), Result::kFull);
    }
    checker.Drain(*ring_);
    ASSERT_EQ(checker.events(), number);
  }
  EXPECT_EQ(checker.gaps(), 0U);
  EXPECT_EQ(ring_->recorded(), number);
  EXPECT_EQ(ring_->dropped(), 0U);
}

TEST_F(CallTraceRingTest, SaysWhenAChunkBegins) {
  EXPECT_EQ(ring_->Record(FreeAt(1)), Result::kStartedChunk);
  EXPECT_EQ(ring_->Record(FreeAt(2)), Result::kRecorded);
  std::uint64_t number = 2;
  while (ring_->Record(FreeAt(++number)) == Result::kRecorded) continue;
  TraceRing::Piece piece;
  ASSERT_TRUE(ring_->Peek(piece));
  EXPECT_EQ(piece.length, call_trace::kChunkBytes);
  ring_->Consume(piece);
  ASSERT_TRUE(ring_->Peek(piece));
  EXPECT_EQ(piece.chunk, 1U);
  EXPECT_EQ(piece.offset, 0U);
}

TEST_F(CallTraceRingTest, RefusesWhatDoesNotFitAndGoesOnAfterwards) {
  std::uint64_t number = 0;
  while (ring_->Record(FreeAt(++number)) != Result::kFull) continue;
  const std::uint64_t refused = number;
  EXPECT_EQ(ring_->Record(FreeAt(++number)), Result::kFull);
  EXPECT_EQ(ring_->recorded(), refused - 1);
  ring_->Drop();
  ring_->Drop();
  Checker checker;
  checker.Drain(*ring_);
  EXPECT_EQ(checker.events(), refused - 1);
  EXPECT_NE(ring_->Record(FreeAt(++number)), Result::kFull);
  checker.Drain(*ring_);
  EXPECT_EQ(checker.events(), refused);
  EXPECT_EQ(checker.gaps(), 2U);
  EXPECT_EQ(ring_->dropped(), 2U);
}

TEST_F(CallTraceRingTest, ResetForgetsEverything) {
  ring_->Record(FreeAt(1));
  ring_->Drop();
  ring_->Count();
  ring_->Reset();
  TraceRing::Piece piece;
  EXPECT_FALSE(ring_->Peek(piece));
  EXPECT_EQ(ring_->calls() + ring_->recorded() + ring_->dropped(), 0U);
}

// For ThreadSanitizer, and for the orders on other processors.
TEST_F(CallTraceRingTest, OneProducerAndOneConsumer) {
  constexpr std::uint64_t kEvents = 1'000'000;
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (std::uint64_t number = 1; number <= kEvents; ++number) {
      ring_->Count();
      if (ring_->Record(FreeAt(number)) == Result::kFull) ring_->Drop();
    }
    // release: pairs with the acquire below.
    done.store(true, std::memory_order_release);
  });
  Checker checker;
  bool last = false;
  do {
    // acquire: pairs with the release above.
    last = done.load(std::memory_order_acquire);
    checker.Drain(*ring_);
  } while (!last);
  producer.join();
  EXPECT_EQ(ring_->calls(), kEvents);
  EXPECT_EQ(checker.events(), ring_->recorded());
  EXPECT_EQ(checker.events() + ring_->dropped(), kEvents);
}

}  // namespace
}  // namespace hakmem
