#include "tools/hakmem/failure_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/failure_record.h"
#include "tools/hakmem/test_records.h"

namespace hakmem::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a stream holds.
struct Found {
  std::vector<Record> records;
  std::vector<Problem> problems;
  std::uint64_t other_lines = 0;
};

Found Read(std::string_view bytes, std::size_t chunk = 1 << 20) {
  Found found;
  FailureReader reader(
      [&found](const Record& record) { found.records.push_back(record); },
      [&found](const Problem& problem) { found.problems.push_back(problem); });
  for (std::size_t at = 0; at < bytes.size(); at += chunk) {
    reader.Add(bytes.substr(at, chunk));
  }
  reader.Finish();
  found.other_lines = reader.other_lines();
  EXPECT_EQ(reader.records(), found.records.size());
  return found;
}

TEST(FailureReaderTest, AFailureHasAllItsFields) {
  const Found found = Read(Line(FailureJson({{"count", 3}, {"dropped", 4}})));
  ASSERT_THAT(found.records, SizeIs(1));
  EXPECT_THAT(found.problems, IsEmpty());
  const Record& record = found.records[0];
  EXPECT_EQ(record.kind, RecordKind::kFailure);
  EXPECT_EQ(record.time_us % 60'000'000, 1'500'000);
  EXPECT_EQ(record.pid, 77u);
  EXPECT_EQ(record.tid, 78u);
  EXPECT_EQ(record.thread, "worker");
  EXPECT_EQ(record.program, "server");
  EXPECT_EQ(record.call, "malloc");
  EXPECT_EQ(record.size, 1048576u);
  EXPECT_EQ(record.count, 3u);
  EXPECT_FALSE(record.alignment.has_value());
  EXPECT_EQ(record.reason, "MapFail");
  EXPECT_EQ(record.detail, "rlimit_as");
  EXPECT_EQ(record.attempts, 2u);
  EXPECT_EQ(record.dropped, 4u);
  EXPECT_TRUE(CallFailed(record));
  ASSERT_TRUE(record.refused.has_value());
  EXPECT_EQ(record.refused->error, "ENOMEM");
  ASSERT_TRUE(record.limit.has_value());
  EXPECT_EQ(record.limit->needed, 2097152u);
  ASSERT_THAT(record.limits, SizeIs(2));
  EXPECT_EQ(record.limits[1].name, "vm.max_map_count");
  ASSERT_TRUE(record.memory.has_value());
  EXPECT_EQ(record.memory->granted, 900000000u);
  EXPECT_EQ(record.memory->live, 800000000u);
  EXPECT_EQ(record.memory->largest_free, 131072u);
  ASSERT_THAT(record.stack, SizeIs(2));
  EXPECT_EQ(record.stack[0].offset, 0x12f0u);
  EXPECT_EQ(record.stack[1].module, Frame::kNoModule);
}

TEST(FailureReaderTest, TheOtherEventsAreRead) {
  const Found found = Read(absl::StrCat(
      Line(StartJson()), Line(MemoryJson("2026-11-20T16:41:00Z", 5)),
      Line(EndJson(9, 2))));
  ASSERT_THAT(found.records, SizeIs(3));
  EXPECT_EQ(found.records[0].kind, RecordKind::kStart);
  ASSERT_THAT(found.records[0].options, SizeIs(1));
  EXPECT_EQ(found.records[0].options[0].second, "1G");
  EXPECT_EQ(found.records[1].kind, RecordKind::kMemory);
  EXPECT_EQ(found.records[1].memory->granted, 5u);
  EXPECT_FALSE(found.records[1].memory->live.has_value());
  EXPECT_EQ(found.records[2].failures, 9u);
  EXPECT_EQ(found.records[2].dropped, 2u);
}

TEST(FailureReaderTest, ServedCallsHaveNotFailed) {
  for (const char* disposition :
       {"served_after_purge", "served_after_handler",
        "served_after_new_handler", "served_by_detour"}) {
    const Found found = Read(Line(FailureJson({{"disposition", disposition}})));
    ASSERT_THAT(found.records, SizeIs(1));
    EXPECT_FALSE(CallFailed(found.records[0])) << disposition;
  }
}

TEST(FailureReaderTest, HoweverTheBytesAreCutTheyAreTheSame) {
  const std::string text =
      absl::StrCat("noise\n", Line(StartJson()), Line(FailureJson()), "tail");
  for (const std::size_t chunk : {1, 7, 64, 1000}) {
    const Found found = Read(text, chunk);
    EXPECT_THAT(found.records, SizeIs(2)) << chunk;
    EXPECT_EQ(found.other_lines, 2u);
    EXPECT_THAT(found.problems, IsEmpty());
  }
}

TEST(FailureReaderTest, RecordsAreFoundAmongOthersOutput) {
  std::string two = absl::StrCat(FailureJson().dump(), FailureJson().dump());
  const Found found =
      Read(absl::StrCat("half a line ", Line(FailureJson()), "warning: x\n",
                        two, " and more\r\n", "{\"schema\":\"other\"}\n"));
  EXPECT_THAT(found.records, SizeIs(3));
  EXPECT_EQ(found.other_lines, 2u);
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST(FailureReaderTest, AQuotedRecordIsNobodysRecord) {
  const Json quoted = {{"log", FailureJson().dump()}};
  const Found found = Read(quoted.dump() + "\n\"hakmem-failure\"\n");
  EXPECT_THAT(found.records, IsEmpty());
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_EQ(found.other_lines, 2u);
}

TEST(FailureReaderTest, ACutRecordIsNamedAndTheNextIsRead) {
  const std::string line = Line(FailureJson());
  const std::string cut = line.substr(0, 100);
  const Found found = Read(absl::StrCat(cut, "\n", line, cut, line, cut));
  EXPECT_THAT(found.records, SizeIs(2));
  ASSERT_THAT(found.problems, SizeIs(3));
  EXPECT_EQ(found.problems[0].line, 1u);
  EXPECT_THAT(found.problems[0].what, HasSubstr("cut off"));
  EXPECT_EQ(found.problems[1].line, 3u);
  EXPECT_EQ(found.problems[2].line, 4u);
  EXPECT_THAT(found.problems[2].what, HasSubstr("where the file ends"));
}

TEST(FailureReaderTest, ALastLineWithoutItsEndIsRead) {
  const Found found = Read(FailureJson().dump());
  EXPECT_THAT(found.records, SizeIs(1));
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST(FailureReaderTest, TheEndOfARecordAloneIsNamed) {
  const Found found = Read(Line(FailureJson()).substr(60));
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].what, HasSubstr("only the end"));
}

TEST(FailureReaderTest, WhatIsMissingOrWrongIsNamed) {
  Json without = FailureJson();
  without.erase("reason");
  const struct {
    Json json;
    const char* what;
  } kCases[] = {
      {without, "reason is missing"},
      {FailureJson({{"size", -1}}), "size is not a whole number"},
      {FailureJson({{"size", 1.5}}), "size is not a whole number"},
      {FailureJson({{"call", 5}}), "call is not a text"},
      {FailureJson({{"time", "soon"}}), "time is no time"},
      {FailureJson({{"time", "infinite-future"}}), "time is no time"},
      {FailureJson({{"version", 2}}), "version is 2"},
      {FailureJson({{"event", "party"}}), "event is one"},
      {FailureJson({{"stack", {{{"module", 1}, {"offset", "0x1"}}}}}),
       "not in the list"},
      {FailureJson({{"stack", {{{"module", 0}, {"offset", "12"}}}}}),
       "no hexadecimal number"},
      {FailureJson({{"stack", 1}}), "stack is not a list"},
      {FailureJson({{"memory", 1}}), "memory: a part is not an object"},
      {FailureJson({{"limit", {{"name", "x"}, {"value", "y"}}}}),
       "limit: value is not a whole number"},
  };
  for (const auto& [json, what] : kCases) {
    const Found found = Read(Line(json));
    EXPECT_THAT(found.records, IsEmpty()) << json;
    ASSERT_THAT(found.problems, SizeIs(1)) << json;
    EXPECT_THAT(found.problems[0].what, HasSubstr(what));
  }
}

TEST(FailureReaderTest, NewFieldsDoNoHarm) {
  const Found found = Read(Line(FailureJson({{"mood", {{"good", true}}}})));
  EXPECT_THAT(found.records, SizeIs(1));
}

TEST(FailureReaderTest, DamagedBytesAreNamed) {
  std::string line = Line(FailureJson());
  line[line.find("worker")] = '\xFF';
  std::string other = Line(FailureJson());
  other[other.find("\"size\"") + 6] = ';';
  const Found found = Read(absl::StrCat(line, other, Line(FailureJson())));
  EXPECT_THAT(found.records, SizeIs(1));
  ASSERT_THAT(found.problems, SizeIs(2));
  EXPECT_THAT(found.problems[0].what, HasSubstr("no JSON"));
}

TEST(FailureReaderTest, AnEndlessLineIsNotKept) {
  const std::string endless(3 * FailureReader::kMaxLineBytes, 'x');
  const Found found = Read(absl::StrCat(endless, "\n", Line(FailureJson())));
  EXPECT_THAT(found.records, SizeIs(1));
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].what, HasSubstr("longer than"));
}

TEST(FailureReaderTest, NestedTextDoesNotNestTheReader) {
  const std::string deep =
      absl::StrCat(R"({"schema":"hakmem-failure","version":1,"x":)",
                   std::string(100000, '['), "\n");
  EXPECT_THAT(Read(deep).problems, SizeIs(1));
}

TEST(FailureReaderTest, AnOptionThatNestsIsNamed) {
  constexpr std::size_t kDepth = 120000;
  std::string line = Line(StartJson());
  line.replace(
      line.find("\"1G\""), 4,
      absl::StrCat(std::string(kDepth, '['), std::string(kDepth, ']')));
  const Found found = Read(line);
  EXPECT_THAT(found.records, IsEmpty());
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].what,
              HasSubstr("HAKMEM_HEAP_LIMIT is no text"));
}

}  // namespace
}  // namespace hakmem::tools
