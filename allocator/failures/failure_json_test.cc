#include "allocator/failures/failure_json.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "allocator/options/option_parser.h"
#include "allocator/stacks/modules.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr TraceSource kSource = {.program = "redis-server",
                                 .variant = "release"};
// 2026-11-20T16:40:01.123456Z
constexpr TraceMoment kMoment = {.time_ns = 1'795'192'801'123'456'789,
                                 .monotonic_ns = 123'456'789,
                                 .process_id = 4711};
constexpr MemoryFigures kMemory = {.granted = 1,
                                   .cached = 2,
                                   .mapped = 3,
                                   .peak_mapped = 4,
                                   .metadata = 5,
                                   .largest_free = 6};

template <typename Print>
std::string Line(Print print) {
  std::string buffer(kFailureLineBytes, '\0');
  JsonText line(buffer.data(), buffer.size());
  print(line);
  EXPECT_FALSE(line.overflowed());
  return std::string(line.text());
}

std::string Failure(const FailureEvent& event,
                    const LimitReport* limits = nullptr,
                    std::uint64_t dropped = 0) {
  return Line([&](JsonText& line) {
    FailureLine(kSource, event, limits, dropped, line);
  });
}

FailureEvent Event() {
  FailureEvent event;
  event.sequence = 17;
  event.time_ns = kMoment.time_ns;
  event.monotonic_ns = kMoment.monotonic_ns;
  event.process_id = 4711;
  event.thread_id = 4712;
  std::strcpy(event.thread_name, "io \"1\"");
  event.call = Call::kMalloc;
  event.size_bytes = 100;
  event.alignment_bytes = 16;
  event.class_bytes = 112;
  event.reason = FailureReason::kMapFail;
  event.detail = FailureDetail::kRlimitAs;
  event.disposition = Disposition::kReturnedNull;
  event.attempts = 2;
  event.refused_call = VmCall::kMap;
  event.refused_bytes = 2097152;
  event.error_number = ENOMEM;
  std::strcpy(event.limit_name, "RLIMIT_AS");
  std::strcpy(event.limit_source, "/proc/self/limits");
  event.limit_value = 1073741824;
  event.limit_use = 1073000000;
  event.limit_needed = 2097152;
  event.memory = kMemory;
  event.live_bytes = 7;
  return event;
}

TEST(FailureJson, WritesAllOfAFailure) {
  LimitReport report;
  report.Add("RLIMIT_AS", "/proc/self/limits", 1073741824, 1073000000);
  report.Add("vm.max_map_count", "/proc/self/maps", 65530, 60);
  EXPECT_EQ(
      Failure(Event(), &report, 3),
      R"({"schema":"hakmem-failure","version":1,"event":"failure",)"
      R"("sequence":17,"time":"2026-11-20T16:40:01.123456Z",)"
      R"("monotonic_ns":123456789,"pid":4711,"tid":4712,)"
      R"("thread":"io \"1\"","program":"redis-server","hakmem":"0.1.0",)"
      R"("variant":"release","call":"malloc","size":100,"alignment":16,)"
      R"("route":"tiny","class":112,"reason":"MapFail",)"
      R"("detail":"rlimit_as","disposition":"returned_null","attempts":2,)"
      R"("refused":{"call":"mmap","bytes":2097152,"errno":12,)"
      R"("error":"ENOMEM"},"limit":{"name":"RLIMIT_AS","value":1073741824,)"
      R"("use":1073000000,"needed":2097152,"source":"/proc/self/limits"},)"
      R"("limits":[{"name":"RLIMIT_AS","value":1073741824,"use":1073000000,)"
      R"("source":"/proc/self/limits"},{"name":"vm.max_map_count",)"
      R"("value":65530,"use":60,"source":"/proc/self/maps"}],)"
      R"("memory":{"granted":1,"live":7,"cached":2,"mapped":3,)"
      R"("peak_mapped":4,"metadata":5,"largest_free":6},"dropped":3,)"
      R"("modules":[],"stack":[]})"
      "\n");
}

TEST(FailureJson, LeavesOutWhatDoesNotApply) {
  FailureEvent event = Event();
  event.call = Call::kCalloc;
  event.count = 5;
  event.class_bytes = 0;
  event.route = Route::kHuge;
  event.reason = FailureReason::kThreshold;
  event.detail = FailureDetail::kOverflow;
  event.error_number = 0;
  event.limit_name[0] = '\0';
  event.live_bytes = kLiveNotCounted;
  const std::string line = Failure(event);
  EXPECT_NE(line.find(R"("size":100,"alignment":16,"count":5,"route":"huge",)"
                      R"("reason":"Threshold","detail":"overflow")"),
            std::string::npos)
      << line;
  for (const char* absent : {"\"class\"", "\"refused\"", "\"limit\"",
                             "\"limits\"", "\"dropped\"", "\"live\""}) {
    EXPECT_EQ(line.find(absent), std::string::npos) << absent;
  }
}

// A bound on single requests is not used up.
TEST(FailureJson, ThresholdsHaveNoUse) {
  FailureEvent event = Event();
  event.reason = FailureReason::kThreshold;
  event.detail = FailureDetail::kMaxAlloc;
  event.error_number = 0;
  std::strcpy(event.limit_name, "HAKMEM_MAX_ALLOC");
  std::strcpy(event.limit_source, "environment");
  EXPECT_NE(Failure(event).find(
                R"("limit":{"name":"HAKMEM_MAX_ALLOC","value":1073741824,)"
                R"("needed":2097152,"source":"environment"})"),
            std::string::npos);
}

TEST(FailureJson, RareErrorsHaveNoName) {
  FailureEvent event = Event();
  event.error_number = 99;
  event.refused_call = VmCall::kMove;
  EXPECT_NE(Failure(event).find(
                R"("refused":{"call":"mremap","bytes":2097152,"errno":99})"),
            std::string::npos);
}

TEST(FailureJson, FramesLieInModules) {
  FailureEvent event = Event();
  const auto here = reinterpret_cast<std::uintptr_t>(&Event);
  const auto libc = reinterpret_cast<std::uintptr_t>(&std::strlen);
  const std::uintptr_t frames[] = {here, 0x10, libc, here + 1};
  for (const std::uintptr_t frame : frames) {
    event.frames[event.frame_count++] = frame;
  }
  ModuleOf own;
  ASSERT_TRUE(FindModule(here, own));
  const std::string line = Failure(event);
  const std::size_t modules = line.find("\"modules\":[{\"path\":\"");
  ASSERT_NE(modules, std::string::npos) << line;
  EXPECT_NE(line.find(own.path, modules), std::string::npos);
  char expected[64];
  std::snprintf(expected, sizeof(expected),
                R"("stack":[{"module":0,"offset":"0x%zx"},)", here - own.base);
  EXPECT_NE(line.find(expected), std::string::npos) << line;
  EXPECT_NE(line.find(R"({"address":"0x10"},)"), std::string::npos) << line;
  std::snprintf(expected, sizeof(expected),
                R"({"module":0,"offset":"0x%zx"}]})", here + 1 - own.base);
  EXPECT_NE(line.find(expected), std::string::npos) << line;
}

// The longest texts there can be, each byte of which is escaped by six.
TEST(FailureJson, AlwaysFits) {
  FailureEvent event = Event();
  std::memset(event.thread_name, 1, sizeof(event.thread_name) - 1);
  std::memset(event.limit_name, 1, sizeof(event.limit_name) - 1);
  std::memset(event.limit_source, 1, sizeof(event.limit_source) - 1);
  LimitReport report;
  const std::string source(sizeof(LimitReading::source) - 1, '\x01');
  while (report.Add(source.c_str(), source.c_str(), ~0UL, ~0UL) >= 0) {
  }
  event.memory = {~0UL, ~0UL, ~0UL, ~0UL, ~0UL, ~0UL};
  event.live_bytes = ~0UL - 1;
  event.frame_count = kMaxFailureFrames;
  for (std::uint64_t& frame : event.frames) frame = ~0UL;
  const std::string line = Failure(event, &report, ~0UL);
  EXPECT_TRUE(line.ends_with("]}\n"));
  std::size_t frames = 0;
  for (std::size_t at = line.find("\"address\""); at != std::string::npos;
       at = line.find("\"address\"", at + 1)) {
    ++frames;
  }
  EXPECT_EQ(frames, kMaxFailureFrames);
}

TEST(FailureJson, WritesTheOtherLines) {
  ParsedOptions options;
  ASSERT_EQ(ApplyOption("HAKMEM_HEAP_LIMIT", "1G", options),
            OptionError::kNone);
  ASSERT_EQ(ApplyOption("HAKMEM_ACE_TRACE", "/tmp/a\"b", options),
            OptionError::kNone);
  EXPECT_EQ(
      Line([&](JsonText& line) { StartLine(kSource, kMoment, options, line); }),
      R"({"schema":"hakmem-failure","version":1,"event":"start",)"
      R"("time":"2026-11-20T16:40:01.123456Z","monotonic_ns":123456789,)"
      R"("pid":4711,"program":"redis-server","hakmem":"0.1.0",)"
      R"("variant":"release","options":{"HAKMEM_HEAP_LIMIT":)"
      R"("1073741824","HAKMEM_ACE_TRACE":"/tmp/a\"b"}})"
      "\n");
  EXPECT_EQ(Line([](JsonText& line) { MemoryLine(kMoment, kMemory, line); }),
            R"({"schema":"hakmem-failure","version":1,"event":"memory",)"
            R"("time":"2026-11-20T16:40:01.123456Z","monotonic_ns":123456789,)"
            R"("pid":4711,"memory":{"granted":1,"cached":2,"mapped":3,)"
            R"("peak_mapped":4,"metadata":5,"largest_free":6}})"
            "\n");
  EXPECT_EQ(
      Line([](JsonText& line) { EndLine(kMoment, 12, 3, kMemory, line); }),
      R"({"schema":"hakmem-failure","version":1,"event":"end",)"
      R"("time":"2026-11-20T16:40:01.123456Z","monotonic_ns":123456789,)"
      R"("pid":4711,"failures":12,"dropped":3,"memory":{"granted":1,)"
      R"("cached":2,"mapped":3,"peak_mapped":4,"metadata":5,)"
      R"("largest_free":6}})"
      "\n");
}

TEST(FailureJson, DatesAreRight) {
  const auto time = [](std::uint64_t seconds) {
    const std::string line = Line([&](JsonText& text) {
      MemoryLine({seconds * 1'000'000'000, 0, 1}, kMemory, text);
    });
    return line.substr(line.find("\"time\":\"") + 8, 19);
  };
  EXPECT_EQ(time(0), "1970-01-01T00:00:00");
  EXPECT_EQ(time(951'782'399), "2000-02-28T23:59:59");
  EXPECT_EQ(time(951'782'400), "2000-02-29T00:00:00");
  EXPECT_EQ(time(951'868'800), "2000-03-01T00:00:00");
  EXPECT_EQ(time(1'709'251'199), "2024-02-29T23:59:59");
  EXPECT_EQ(time(1'735'689'599), "2024-12-31T23:59:59");
  EXPECT_EQ(time(1'735'689'600), "2025-01-01T00:00:00");
  EXPECT_EQ(time(4'107'542'400), "2100-03-01T00:00:00");
}

}  // namespace
}  // namespace hakmem
