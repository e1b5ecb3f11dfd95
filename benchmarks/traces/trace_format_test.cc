#include "benchmarks/traces/trace_format.h"

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem::traces {
namespace {

std::span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::vector<Event> Example() {
  return {
      {.op = Op::kAllocate, .thread = 0, .block = 0, .size = 0},
      {.op = Op::kAllocateZeroed, .thread = 3, .block = 1, .size = 127},
      {.op = Op::kAllocateAligned,
       .alignment_log2 = 30,
       .thread = 3,
       .block = 2,
       .size = kMaxSize},
      {.op = Op::kReallocate, .thread = 0, .block = 1, .size = 128},
      {.op = Op::kFree, .thread = 1, .block = 0},
      {.op = Op::kAllocate, .thread = 2, .block = 30, .size = 1 << 20},
  };
}

std::string Write(const std::vector<Event>& events) {
  Writer writer;
  for (const Event& event : events) writer.Add(event);
  return writer.Finish();
}

// What a Reader gives before its end or its first error.
std::vector<Event> ReadAll(Reader& reader) {
  std::vector<Event> events;
  Event event;
  while (reader.Next(event)) events.push_back(event);
  return events;
}

// Makes the checksum fit, so that what comes after it is read.
void Seal(std::string& file) {
  const std::uint64_t sum = Checksum(Bytes(file).subspan(kChecksummedBegin));
  for (std::size_t byte = 0; byte < 8; ++byte) {
    file[kChecksumBegin + byte] = static_cast<char>(sum >> (8 * byte));
  }
}

const char* ErrorOf(const std::string& file) {
  Reader reader(Bytes(file));
  ReadAll(reader);
  return reader.error();
}

TEST(TraceFormat, GivesBackWhatWasWritten) {
  const std::vector<Event> events = Example();
  const std::string file = Write(events);
  Reader reader(Bytes(file));
  EXPECT_EQ(reader.header(), (Header{.threads = 4, .blocks = 31, .events = 6}));
  EXPECT_EQ(ReadAll(reader), events);
  EXPECT_EQ(reader.error(), nullptr);
}

TEST(TraceFormat, GivesBackManyRandomEvents) {
  std::mt19937_64 random(11);
  std::vector<Event> events(20'000);
  for (Event& event : events) {
    event.op = static_cast<Op>(random() % 5);
    event.thread = static_cast<std::uint32_t>(random() % kMaxThreads);
    event.block = static_cast<std::uint32_t>(random() % 150'000);
    if (event.op != Op::kFree) event.size = random() >> (24 + random() % 40);
    if (event.op == Op::kAllocateAligned) {
      event.alignment_log2 =
          static_cast<std::uint8_t>(random() % (kMaxAlignmentLog2 + 1));
    }
  }
  const std::string file = Write(events);
  Reader reader(Bytes(file));
  EXPECT_EQ(ReadAll(reader), events);
  EXPECT_EQ(reader.error(), nullptr);
}

TEST(TraceFormat, AnEmptyTraceIsATrace) {
  const std::string file = Write({});
  Reader reader(Bytes(file));
  EXPECT_EQ(reader.header(), Header());
  EXPECT_TRUE(ReadAll(reader).empty());
  EXPECT_EQ(reader.error(), nullptr);
}

// The layout is for other programs, too: it must not change unnoticed.
TEST(TraceFormat, HasTheBytesThatTheHeaderDescribes) {
  const std::string file = Write({{.op = Op::kAllocateAligned,
                                   .alignment_log2 = 6,
                                   .thread = 1,
                                   .block = 2,
                                   .size = 300},
                                  {.op = Op::kFree, .thread = 1, .block = 2}});
  EXPECT_EQ(file.substr(0, 8), "HAKTRACE");
  EXPECT_EQ(file.substr(kChecksummedBegin),
            std::string("\x01\x02\x03\x02"
                        "\x0a\x01\x02\xac\x02\x06"
                        "\x04\x02"));
}

TEST(TraceFormat, RefusesWhatIsNoTrace) {
  EXPECT_STREQ(ErrorOf(""), "not an allocation trace");
  EXPECT_STREQ(ErrorOf("HAKTRACE"), "not an allocation trace");
  EXPECT_STREQ(ErrorOf(std::string(100, 'x')), "not an allocation trace");
}

TEST(TraceFormat, RefusesEachFlippedBit) {
  const std::string file = Write(Example());
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(ErrorOf(damaged), nullptr) << "bit " << bit;
  }
}

TEST(TraceFormat, RefusesEachShorterFile) {
  const std::string file = Write(Example());
  for (std::size_t size = 0; size < file.size(); ++size) {
    std::string damaged = file.substr(0, size);
    EXPECT_NE(ErrorOf(damaged), nullptr) << size << " bytes";
    // Also if whoever cut it knew of the checksum.
    if (size < kChecksummedBegin) continue;
    Seal(damaged);
    EXPECT_NE(ErrorOf(damaged), nullptr) << size << " bytes, sealed";
  }
}

TEST(TraceFormat, RefusesBytesAfterTheLastEvent) {
  std::string file = Write(Example()) + '\0';
  Seal(file);
  EXPECT_STREQ(ErrorOf(file), "bytes follow its last event");
}

TEST(TraceFormat, NamesWhatIsOutOfBounds) {
  const std::string start = Write({}).substr(0, kChecksummedBegin);
  const auto error = [&](const std::string& rest) {
    std::string file = start + rest;
    Seal(file);
    return ErrorOf(file);
  };
  using Text = std::string;
  EXPECT_STREQ(error(Text("\x02\0\0\0", 4)),
               "of a version that this program does not know");
  EXPECT_STREQ(error(Text("\x01\xff\xff\x03\0\0", 6)),
               "it has a number that is out of bounds");  // threads
  EXPECT_STREQ(error(Text("\x01\x01\x09\x01\0\0\0", 7)),
               "it has more blocks than events for them");
  EXPECT_STREQ(error(Text("\x01\x01\x01\x03\0\0\0", 7)),
               "it has a number that is out of bounds");  // events
  EXPECT_STREQ(error(Text("\x01\x01\x01\x01\x05\0\0", 7)),
               "it has an operation that does not exist");
  EXPECT_STREQ(error(Text("\x01\x01\x01\x01\x10\0\0", 7)),
               "it has an operation that does not exist");
  EXPECT_STREQ(error(Text("\x01\x01\x01\x01\x08\x01\0\0", 8)),
               "it has a thread out of bounds");
  EXPECT_STREQ(error(Text("\x01\x01\x01\x01\0\x01\0", 7)),
               "it has a number that is out of bounds");  // block
  EXPECT_STREQ(error(Text("\x01\x01\x01\x01\x02\0\0\x1f", 8)),
               "it has a number that is out of bounds");  // alignment
  EXPECT_STREQ(error(Text("\x01\x01\x01\x01\0\0", 6) + Text(10, '\xff')),
               "it has a number that is too long");
}

// Damage behind a checksum that fits: any error or none, but within bounds.
TEST(TraceFormat, StaysWithinBoundsWhateverTheBytes) {
  const std::string file = Write(Example());
  std::mt19937_64 random(5);
  int refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string damaged = file;
    for (std::uint64_t i = 0; i <= random() % 4; ++i) {
      const std::size_t at =
          kChecksummedBegin + random() % (damaged.size() - kChecksummedBegin);
      damaged[at] = static_cast<char>(random());
    }
    if (random() % 4 == 0) {
      damaged.resize(kChecksummedBegin + random() % damaged.size());
    }
    Seal(damaged);
    // Of its own size, so that reading past its end is seen.
    const std::vector<std::uint8_t> exact(damaged.begin(), damaged.end());
    Reader reader(exact);
    for (const Event& event : ReadAll(reader)) {
      ASSERT_LT(event.thread, reader.header().threads);
      ASSERT_LT(event.block, reader.header().blocks);
      ASSERT_LE(event.size, kMaxSize);
      ASSERT_LE(event.alignment_log2, kMaxAlignmentLog2);
    }
    refused += reader.error() != nullptr ? 1 : 0;
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_LT(refused, 50'000);
}

}  // namespace
}  // namespace hakmem::traces
