#include "benchmarks/traces/converter.h"

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/traces/plan.h"
#include "benchmarks/traces/raw_record.h"
#include "benchmarks/traces/trace_format.h"
#include "gtest/gtest.h"

namespace hakmem::traces {
namespace {

std::span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

RawRecord Malloc(std::uint64_t address, std::uint64_t size,
                 std::uint32_t thread = 0) {
  return {address, 0, size, thread, Call::kMalloc};
}

RawRecord Free(std::uint64_t address, std::uint32_t thread = 0) {
  return {address, 0, 0, thread, Call::kFree};
}

RawRecord Realloc(std::uint64_t old, std::uint64_t address,
                  std::uint64_t size) {
  return {address, old, size, 0, Call::kRealloc};
}

std::vector<Event> Events(const Conversion& conversion) {
  std::vector<Event> events;
  Reader reader(Bytes(conversion.trace));
  Event event;
  while (reader.Next(event)) events.push_back(event);
  EXPECT_EQ(reader.error(), nullptr);
  return events;
}

std::vector<Event> Converted(const std::vector<RawRecord>& records) {
  return Events(Convert(records, UINT64_MAX));
}

TEST(Converter, KeepsWhatHappenedToEachBlock) {
  const std::vector<RawRecord> records = {
      Malloc(0x1000, 10, 70),
      {0x2000, 0, 20, 70, Call::kCalloc},
      {0x3000, 4096, 30, 90, Call::kAligned},
      Free(0x1000, 90),
      Free(0x3000, 70),
  };
  EXPECT_EQ(
      Converted(records),
      (std::vector<Event>{
          {.op = Op::kAllocate, .thread = 0, .block = 0, .size = 10},
          {.op = Op::kAllocateZeroed, .thread = 0, .block = 1, .size = 20},
          {.op = Op::kAllocateAligned,
           .alignment_log2 = 12,
           .thread = 1,
           .block = 8,
           .size = 30},
          {.op = Op::kFree, .thread = 1, .block = 0},
          {.op = Op::kFree, .thread = 0, .block = 8},
      }));
}

TEST(Converter, ABlockKeepsItsNumberWhenReallocMovesIt) {
  const std::vector<RawRecord> records = {
      Malloc(0x1000, 10), Realloc(0x1000, 0x2000, 20), Malloc(0x1000, 30),
      Free(0x2000), Free(0x1000)};
  EXPECT_EQ(Converted(records),
            (std::vector<Event>{
                {.op = Op::kAllocate, .block = 0, .size = 10},
                {.op = Op::kReallocate, .block = 0, .size = 20},
                {.op = Op::kAllocate, .block = 1, .size = 30},
                {.op = Op::kFree, .block = 0},
                {.op = Op::kFree, .block = 1},
            }));
}

TEST(Converter, ReallocMayFreeAndMayBeTheFirstThatIsKnown) {
  const std::vector<RawRecord> records = {Realloc(0x9000, 0x1000, 10),
                                          Realloc(0x1000, 0, 0), Free(0x1000)};
  const Conversion conversion = Convert(records, UINT64_MAX);
  EXPECT_EQ(Events(conversion), (std::vector<Event>{
                                    {.op = Op::kAllocate, .size = 10},
                                    {.op = Op::kFree},
                                }));
  EXPECT_EQ(conversion.left_out, 1U);
}

TEST(Converter, LeavesOutWhatNobodyAllocated) {
  const std::vector<RawRecord> records = {Free(0x5000), Malloc(0x1000, 1),
                                          Free(0x1000), Free(0x1000)};
  const Conversion conversion = Convert(records, UINT64_MAX);
  EXPECT_EQ(conversion.events, 2U);
  EXPECT_EQ(conversion.left_out, 2U);
}

TEST(Converter, AnAddressGivenTwiceWasFreedBetween) {
  const std::vector<RawRecord> records = {Malloc(0x1000, 1), Malloc(0x1000, 2),
                                          Free(0x1000)};
  EXPECT_EQ(Converted(records), (std::vector<Event>{
                                    {.op = Op::kAllocate, .size = 1},
                                    {.op = Op::kFree},
                                    {.op = Op::kAllocate, .size = 2},
                                    {.op = Op::kFree},
                                }));
}

TEST(Converter, UsesNumbersAgain) {
  std::vector<RawRecord> records;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    records.push_back(Malloc(16 * i + 16, i));
    // The second thread only frees.
    if (i >= 100) records.push_back(Free(16 * (i - 100) + 16, 1));
  }
  const Conversion conversion = Convert(records, UINT64_MAX);
  Reader reader(Bytes(conversion.trace));
  EXPECT_EQ(reader.header().events, records.size());
  EXPECT_LT(reader.header().blocks, 600U);
}

TEST(Converter, TheThreadThatFreedANumberUsesItFirst) {
  const std::vector<RawRecord> records = {Malloc(0x1000, 1, 0), Free(0x1000, 1),
                                          Malloc(0x2000, 2, 0),
                                          Malloc(0x3000, 3, 1)};
  const std::vector<Event> events = Converted(records);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_NE(events[2].block, events[0].block);
  EXPECT_EQ(events[3].block, events[0].block);
}

// Whatever the records are, and wherever they are cut, the trace is valid.
TEST(Converter, MakesAValidTraceOfAnyRecords) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 300; ++round) {
    std::vector<RawRecord> records(random() % 400);
    for (RawRecord& record : records) {
      record = {16 * (random() % 20), 16 * (random() % 20),
                random() >> (random() % 64),
                static_cast<std::uint32_t>(random() % 4),
                static_cast<Call>(1 + random() % 6)};
      if (record.call == Call::kAligned && random() % 2 == 0) {
        record.argument = std::uint64_t{1} << (random() % 64);
      }
    }
    const std::uint64_t most = random() % 400;
    const Conversion conversion = Convert(records, most);
    EXPECT_LE(conversion.events, most);
    Plan plan;
    EXPECT_STREQ(plan.Load(Bytes(conversion.trace)), nullptr);
    EXPECT_EQ(plan.header().events, conversion.events);
  }
}

}  // namespace
}  // namespace hakmem::traces
