// Reading call traces that are whole, damaged or cut.

#include "tools/hakmem/trace_events.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/hakmem/test_trace.h"
#include "tools/hakmem/trace_blocks.h"

namespace hakmem::tools {
namespace {

struct Result {
  bool ok = false;
  std::string error;
  TraceBlocks blocks;
  TraceStacks stacks;
  std::vector<CallEvent> events;
};

Result Read(const TestTrace& trace) {
  Result result;
  absl::StatusOr<TraceBlocks> blocks = ReadTraceBlocks(trace.span());
  result.ok = blocks.ok();
  result.error = std::string(blocks.status().message());
  if (!blocks.ok()) return result;
  result.blocks = *std::move(blocks);
  ReadTraceEvents(result.blocks, result.stacks, [&](const CallEvent& event) {
    result.events.push_back(event);
  });
  return result;
}

std::vector<std::uint64_t> Addresses(const Result& result) {
  std::vector<std::uint64_t> addresses;
  for (const CallEvent& event : result.events) {
    addresses.push_back(event.address);
  }
  return addresses;
}

using Addresses64 = std::vector<std::uint64_t>;

TEST(TraceEventsTest, NoTraceIsAnError) {
  TestTrace trace;
  EXPECT_EQ(Read(trace).error, "it is empty");
  trace.bytes() = "HAKTRACE is the replayer's";
  EXPECT_EQ(Read(trace).error, "it is not a call trace of hakmem");
}

TEST(TraceEventsTest, AThreadsStreamIsPutTogether) {
  TestTrace trace;
  trace.Start()
      .Events(1, 0, {TestFree(10, 16), TestFree(20, 32)})
      .Events(1, 0, {TestFree(30, 48)})
      .Events(1, 1, {TestFree(40, 64)})
      .Thread(1, 77, "worker")
      .End();
  const Result result = Read(trace);
  EXPECT_EQ(Addresses(result), (Addresses64{16, 32, 48, 64}));
  EXPECT_EQ(result.events[2].time_ns, 30U);
  EXPECT_EQ(result.blocks.threads.at(1).name, "worker");
  EXPECT_EQ(result.blocks.damage.bytes(), 0U);
}

TEST(TraceEventsTest, BetweenThreadsTimeDecidesAndReleasesComeFirst) {
  TestTrace trace;
  trace.Start()
      .Events(2, 0, {TestAllocation(10, 32, 1), TestFree(30, 16)})
      .Events(1, 0, {TestAllocation(20, 48, 1), TestAllocation(30, 16, 1)})
      .End();
  const Result result = Read(trace);
  EXPECT_EQ(Addresses(result), (Addresses64{32, 48, 16, 16}));
  EXPECT_EQ(result.events[2].kind, CallEvent::Kind::kFree);
}

TEST(TraceEventsTest, AThreadsOrderHoldsThoughItsTimesGoBack) {
  TestTrace trace;
  trace.Start()
      .Events(1, 0, {TestFree(50, 16), TestFree(40, 32)})
      .Events(2, 0, {TestFree(45, 48)})
      .End();
  EXPECT_EQ(Addresses(Read(trace)), (Addresses64{48, 16, 32}));
}

// Of three blocks of a thread in three chunks, the middle one is damaged.
TEST(TraceEventsTest, ADamagedBlockIsPassedOver) {
  TestTrace trace;
  trace.Start().Events(1, 0, {TestFree(1, 16)});
  const std::size_t middle = trace.bytes().size();
  trace.Events(1, 1, {TestFree(2, 32)});
  const std::size_t end = trace.bytes().size();
  trace.Events(1, 2, {TestFree(3, 48)}).End();
  const std::string whole = trace.bytes();
  for (std::size_t at = middle; at < end; ++at) {
    trace.bytes() = whole;
    trace.bytes()[at] ^= 0x10;
    const Result result = Read(trace);
    EXPECT_EQ(Addresses(result), (Addresses64{16, 48})) << at - middle;
    EXPECT_EQ(result.blocks.damage.bytes(), end - middle);
    EXPECT_EQ(result.blocks.damage.places(), 1U);
    ASSERT_EQ(result.blocks.damage.notes().size(), 1U);
    EXPECT_EQ(result.blocks.damage.notes()[0],
              "there is no whole block at byte " + std::to_string(middle));
    EXPECT_TRUE(result.blocks.end.has_value());
  }
}

// A trace whose thread 1 has lost its second event, and then has these.
TestTrace WithoutTheSecond(const std::vector<TraceEvent>& events) {
  TestTrace trace;
  trace.Start().Events(1, 0, {TestFree(1, 16)});
  const std::size_t begin = trace.bytes().size();
  trace.Events(1, 0, {TestFree(2, 32)});
  const std::size_t end = trace.bytes().size();
  trace.Events(1, 0, events).Events(1, 1, {TestFree(4, 64)}).End();
  trace.bytes().erase(begin, end - begin);
  return trace;
}

TEST(TraceEventsTest, NoEventsNeedNothingThatIsMissing) {
  const Result result = Read(WithoutTheSecond({}));
  EXPECT_EQ(Addresses(result), (Addresses64{16, 64}));
  EXPECT_EQ(result.blocks.damage.places(), 0U);
}

TEST(TraceEventsTest, EventsAfterAMissingPartOfTheirChunkAreLeftOut) {
  const Result result = Read(WithoutTheSecond({TestFree(3, 48)}));
  EXPECT_EQ(Addresses(result), (Addresses64{16, 64}));
  ASSERT_EQ(result.blocks.damage.notes().size(), 1U);
  EXPECT_EQ(result.blocks.damage.notes()[0],
            "thread 1, chunk 0: events that need what is missing before them");
}

TEST(TraceEventsTest, ACutTraceIsReadUpToTheCut) {
  TestTrace trace;
  trace.Start().Events(1, 0, {TestFree(1, 16)});
  const std::size_t whole = trace.bytes().size();
  trace.Events(1, 1, {TestFree(2, 32)});
  const std::string all = trace.bytes();
  for (std::size_t size = whole; size < all.size(); ++size) {
    trace.bytes() = all.substr(0, size);
    const Result result = Read(trace);
    EXPECT_EQ(Addresses(result), (Addresses64{16}));
    EXPECT_FALSE(result.blocks.end.has_value());
    EXPECT_EQ(result.blocks.damage.bytes(), size - whole);
  }
  EXPECT_EQ(
      Read(trace).blocks.damage.notes()[0],
      "the last block, at byte " + std::to_string(whole) + ", is cut short");
}

TEST(TraceEventsTest, WithoutItsStartATraceIsStillRead) {
  TestTrace trace;
  trace.Events(1, 0, {TestAllocation(1, 16, 100)}).End();
  const Result result = Read(trace);
  EXPECT_FALSE(result.blocks.start.has_value());
  ASSERT_EQ(result.events.size(), 1U);
  EXPECT_EQ(result.events[0].size, 100U);
  EXPECT_EQ(NameOf(result.blocks.facts().calls, 1), "number 1");
}

TEST(TraceEventsTest, ASecondTraceInTheFileIsNotMixedIn) {
  TestTrace trace;
  trace.Start().Events(1, 0, {TestFree(1, 16)}).End();
  trace.Start().Events(1, 0, {TestFree(2, 32)});
  const Result result = Read(trace);
  EXPECT_EQ(Addresses(result), (Addresses64{16}));
  EXPECT_EQ(result.blocks.damage.places(), 2U);
  EXPECT_NE(result.blocks.damage.notes()[0].find(
                "begins another trace, which is not read"),
            std::string::npos);
}

TEST(TraceEventsTest, ANewerFormatIsNamed) {
  TestTrace trace;
  trace.Block(call_trace::BlockType::kStart, TestTrace::Payload().Number(2));
  const Result result = Read(trace);
  EXPECT_EQ(result.error,
            "the block at byte 0 is of version 2 of the format, which this "
            "program can't read");
}

TEST(TraceEventsTest, ABlockOfAnUnknownTypeIsNamed) {
  TestTrace trace;
  trace.Start().Block(static_cast<call_trace::BlockType>(99), {});
  const Result result = Read(trace);
  ASSERT_EQ(result.blocks.damage.notes().size(), 1U);
  EXPECT_NE(result.blocks.damage.notes()[0].find("is of the unknown type 99"),
            std::string::npos);
}

// A checksum that is right does not make the content so.
TEST(TraceEventsTest, NonsenseInAWholeBlockIsLeftOut) {
  for (const std::string& nonsense :
       {std::string("\x01"), std::string("\x25\x02\x02\x01\x40", 5),
        std::string("\x81\x02\x02\x07", 4),
        std::string("\x81\x02\x02\x00\x21", 5), std::string(11, '\xff')}) {
    TestTrace trace;
    trace.Start().Block(call_trace::BlockType::kEvents, TestTrace::Payload()
                                                            .Number(1)
                                                            .Number(0)
                                                            .Number(0)
                                                            .Number(1)
                                                            .Number(0)
                                                            .Bytes(nonsense));
    trace.Events(1, 1, {TestFree(2, 32)});
    const Result result = Read(trace);
    EXPECT_EQ(Addresses(result), (Addresses64{32}));
    ASSERT_EQ(result.blocks.damage.notes().size(), 1U);
    EXPECT_EQ(result.blocks.damage.bytes(), nonsense.size());
    EXPECT_NE(result.blocks.damage.notes()[0].find("can't be read"),
              std::string::npos);
  }
}

TEST(TraceEventsTest, EqualStacksOfDifferentThreadsAreOne) {
  const std::uintptr_t stack[] = {0x100, 0x200};
  TraceEvent event = TestFree(1, 16);
  event.stack = stack;
  TestTrace trace;
  trace.Start(1, true).Events(1, 0, {event, event}).Events(2, 0, {event});
  const Result result = Read(trace);
  ASSERT_EQ(result.events.size(), 3U);
  EXPECT_EQ(result.events[0].stack, result.events[2].stack);
  EXPECT_EQ(result.stacks.size(), 2U);
  EXPECT_EQ(result.stacks.At(result.events[0].stack),
            (std::vector<std::uint64_t>{0x100, 0x200}));
}

}  // namespace
}  // namespace hakmem::tools
