// What a call trace says, and the forms in which it is handed on.

#include "tools/hakmem/trace_report.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "benchmarks/traces/trace_format.h"
#include "tools/hakmem/test_trace.h"
#include "tools/hakmem/trace_analysis.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_bytes.h"
#include "tools/hakmem/trace_events.h"
#include "tools/hakmem/trace_replay.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::json;

// A trace and all that is made of it.
class Reported {
 public:
  explicit Reported(const TestTrace& trace)
      : blocks_(*ReadTraceBlocks(trace.span())),
        analysis_(blocks_.facts()),
        replay_(blocks_.facts()) {
    ReadTraceEvents(blocks_, stacks_, [this](const CallEvent& event) {
      analysis_.Add(event);
      replay_.Add(event);
    });
    symbols_ = std::make_unique<TraceSymbols>(
        blocks_, SymbolizerOptions{.program = "none", .symbols_folder = ""});
  }

  TraceReport report() const {
    return {.path = path_,
            .blocks = blocks_,
            .stacks = stacks_,
            .analysis = analysis_,
            .symbols = *symbols_};
  }
  const TraceAnalysis& analysis() const { return analysis_; }
  Json json() const { return Json::parse(TraceAsJson(report())); }
  std::string text() const { return TraceAsText(report(), 10); }
  TraceReplay::File Replay() { return replay_.Finish(); }

 private:
  const std::string path_ = "a.trace";
  TraceBlocks blocks_;
  TraceStacks stacks_;
  TraceAnalysis analysis_;
  TraceReplay replay_;
  std::unique_ptr<TraceSymbols> symbols_;
};

// One allocation a millisecond. 61 intervals make 15 rows of four and one of
// one.
TEST(TraceReportTest, TheRateOfATraceThatEndsEarlyInTheLastRow) {
  TestTrace trace;
  trace.Start();
  std::vector<TraceEvent> events;
  for (std::uint64_t i = 0; i < 61; ++i) {
    events.push_back(TestAllocation(i * 1'000'000, 0x100 + 16 * i, 16));
  }
  trace.Events(1, 0, events).Thread(1, 77, "one").End();
  const std::string text = Reported(trace).text();
  const std::size_t last = text.find("\n  60 ms ");
  ASSERT_NE(last, std::string::npos) << text;
  EXPECT_TRUE(absl::StrContains(
      text.substr(last + 1, text.find('\n', last + 1) - last - 1), " 1,000 "))
      << text;
}

TestTrace TwoThreads(std::uint64_t sample = 1) {
  TestTrace trace;
  trace.Start(sample);
  TraceEvent aligned = TestAllocation(3'000'000, 0x300, 20, Call::kMemalign);
  aligned.alignment_bytes = 64;
  TraceEvent from = TestFree(5'000'000, 0x200);
  from.operation = call_trace::kReallocFrom;
  TraceEvent to = TestAllocation(5'000'100, 0x400, 5000, Call::kRealloc);
  to.linked = true;
  trace.Events(
      1, 0,
      {TestAllocation(1'000'000, 0x100, 10),
       TestAllocation(2'000'000, 0x200, 30, Call::kCalloc), aligned, from, to});
  trace.Events(2, 0, {TestFree(4'000'000, 0x100), TestFree(4'000'000, 0x900)});
  trace.Events(1, 0,
               {{.operation = call_trace::kFailure,
                 .time_ns = 6'000'000,
                 .size_bytes = 1 << 30,
                 .reason = FailureReason::kMapFail,
                 .detail = FailureDetail::kRlimitAs,
                 .disposition = Disposition::kServedAfterPurge,
                 .call = Call::kNew,
                 .attempts = 2}});
  trace.Thread(1, 71, "main").Thread(2, 72, "worker").End();
  return trace;
}

TEST(TraceReportTest, BlocksAreFollowedFromAllocationToRelease) {
  const Reported reported(TwoThreads());
  const TraceAnalysis& analysis = reported.analysis();
  const BlockTally& total = analysis.total();
  EXPECT_EQ(total.allocations, 4U);
  EXPECT_EQ(total.allocated_bytes, 5060U);
  EXPECT_EQ(total.block_bytes, 16U + 32 + 64 + 8192);
  EXPECT_EQ(total.freed, 2U);
  std::uint64_t frees = 0;
  for (const TraceInterval& interval : analysis.timeline().intervals()) {
    frees += interval.frees;
  }
  EXPECT_EQ(frees, 2U);
  EXPECT_EQ(total.freed_by_others, 1U);
  EXPECT_EQ(total.live_blocks, 2U);
  EXPECT_EQ(total.live_bytes, 5020U);
  EXPECT_EQ(total.peak_live_bytes, 5020U);
  EXPECT_EQ(analysis.reallocs_moved(), 1U);
  EXPECT_EQ(analysis.reallocs_in_place(), 0U);
  EXPECT_EQ(analysis.unknown_frees(), 1U);
  EXPECT_EQ(analysis.threads().at(2).frees_of_others, 1U);
  // 3 ms each.
  EXPECT_EQ(analysis.lifetimes()[21], 2U);
  const auto& pool = analysis.classes().at({TraceRoute::kPool, 64});
  EXPECT_EQ(pool.allocations, 1U);
  const auto& spans = analysis.classes().at({TraceRoute::kSpan, 0});
  EXPECT_EQ(spans.live_bytes, 5000U);
}

TEST(TraceReportTest, SitesKnowWhatWasLiveAtThePeakAndWhatWasTemporary) {
  TestTrace trace;
  trace.Start();
  trace.Events(1, 0,
               {TestAllocation(1, 0x100, 100), TestFree(2, 0x100),
                TestAllocation(3, 0x200, 60),
                TestAllocation(4, 0x300, 50, Call::kCalloc), TestFree(5, 0x200),
                TestAllocation(6, 0x400, 55),
                TestAllocation(7, 0x500, 1, Call::kNew), TestFree(8, 0x300)});
  trace.Events(2, 0, {TestFree(9, 0x500)});
  trace.Thread(1, 71, "main").Thread(2, 72, "other").End();
  const Reported reported(trace);
  const TraceAnalysis& analysis = reported.analysis();
  const auto site = [&](Call call) {
    return analysis.AtPeak(
        analysis.sites().at({kNoStack, static_cast<std::uint8_t>(call)}));
  };
  EXPECT_EQ(analysis.peak_ns(), 4U);
  EXPECT_EQ(analysis.AtPeak(analysis.total()).bytes_at_peak, 110U);
  EXPECT_EQ(analysis.AtPeak(analysis.total()).blocks_at_peak, 2U);
  EXPECT_EQ(site(Call::kMalloc).bytes_at_peak, 60U);
  EXPECT_EQ(site(Call::kCalloc).bytes_at_peak, 50U);
  EXPECT_EQ(site(Call::kNew).bytes_at_peak, 0U);
  // The first alone: others were freed later, or by another thread.
  EXPECT_EQ(analysis.total().temporary, 1U);
  EXPECT_EQ(site(Call::kMalloc).temporary_bytes, 100U);
}

TEST(TraceReportTest, ShapesFollowTheFactsOfTheTrace) {
  const Reported reported(TwoThreads());
  const TraceFacts& facts = reported.report().blocks.facts();
  const auto shape = [&](std::uint64_t size, std::uint64_t alignment) {
    const BlockShape found = ShapeOf(facts, size, alignment);
    return std::pair(found.route, found.block_bytes);
  };
  EXPECT_EQ(shape(0, 0), std::pair(TraceRoute::kTiny, std::uint64_t{16}));
  EXPECT_EQ(shape(17, 0), std::pair(TraceRoute::kTiny, std::uint64_t{32}));
  EXPECT_EQ(shape(17, 64), std::pair(TraceRoute::kPool, std::uint64_t{64}));
  EXPECT_EQ(shape(65, 0), std::pair(TraceRoute::kSpan, std::uint64_t{4096}));
  EXPECT_EQ(shape(1, 4096), std::pair(TraceRoute::kSpan, std::uint64_t{4096}));
  EXPECT_EQ(shape((1 << 20) + 1, 0),
            std::pair(TraceRoute::kHuge, std::uint64_t{(1 << 20) + 4096}));
  EXPECT_EQ(ShapeOf(TraceFacts(), 100, 0).route, TraceRoute::kUnknown);
}

TEST(TraceReportTest, AnAddressThatComesAgainWasReleased) {
  TestTrace trace;
  trace.Start().Events(1, 0,
                       {TestAllocation(1, 16, 10), TestAllocation(2, 16, 20)});
  const Reported reported(trace);
  EXPECT_EQ(reported.analysis().lost_frees(), 1U);
  EXPECT_EQ(reported.analysis().total().live_bytes, 20U);
  EXPECT_EQ(reported.analysis().total().mean_lifetime_ns(), 1U);
  // Written later, as a call that began before another one within it.
  TestTrace nested;
  nested.Start().Events(1, 0,
                        {TestAllocation(2, 16, 10), TestAllocation(1, 16, 20)});
  EXPECT_EQ(Reported(nested).analysis().total().mean_lifetime_ns(), 0U);
}

TEST(TraceReportTest, LifetimesAddUpBeyond64Bits) {
  constexpr std::uint64_t kLife = std::uint64_t{1} << 62;
  std::vector<TraceEvent> events;
  for (std::uint64_t i = 0; i < 5; ++i) {
    events.push_back(TestAllocation(0, 0x100 + 16 * i, 16));
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    events.push_back(TestFree(kLife, 0x100 + 16 * i));
  }
  TestTrace trace;
  trace.Start().Events(1, 0, events).Thread(1, 77, "one").End();
  EXPECT_EQ(Reported(trace).json()["totals"]["mean_lifetime_ns"], kLife);
}

TEST(TraceReportTest, TimelineStaysBounded) {
  TraceTimeline timeline;
  constexpr std::uint64_t kHour = 3'600'000'000'000;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    timeline.Allocate(i * kHour / 1000, TraceRoute::kTiny, 10);
    if (i % 2 == 1) {
      timeline.Release(i * kHour / 1000, TraceRoute::kTiny, 10);
    }
  }
  EXPECT_LE(timeline.intervals().size(), TraceTimeline::kMaxIntervals);
  EXPECT_GT(timeline.intervals().size(), TraceTimeline::kMaxIntervals / 4);
  const TraceTimeline coarser = timeline.Coarser(7);
  EXPECT_LE(coarser.intervals().size(), 7U);
  for (const TraceTimeline& each : {timeline, coarser}) {
    std::uint64_t allocations = 0;
    std::uint64_t frees = 0;
    for (const TraceInterval& interval : each.intervals()) {
      allocations += interval.allocations;
      frees += interval.frees;
    }
    EXPECT_EQ(allocations, 1000U);
    EXPECT_EQ(frees, 500U);
    EXPECT_EQ(each.intervals().back().all_live_bytes(), 5000U);
    EXPECT_EQ(each.intervals().back().live_blocks, 500U);
  }
}

TEST(TraceReportTest, JsonHasEverything) {
  const Json json = Reported(TwoThreads()).json();
  EXPECT_EQ(json["schema"], "hakmem-trace-report");
  EXPECT_EQ(json["program"], "program");
  EXPECT_EQ(json["totals"]["live_bytes"], 5020);
  EXPECT_EQ(json["routes"]["tiny"]["allocations"], 2);
  EXPECT_EQ(json["calls"]["calloc"]["allocated_bytes"], 30);
  EXPECT_EQ(json["threads"][1]["name"], "worker (72)");
  EXPECT_EQ(json["failures"][0]["disposition"], "served_after_purge");
  EXPECT_EQ(json["failures"][0]["detail"], "rlimit_as");
  EXPECT_TRUE(json["complete"]);
  EXPECT_EQ(json["timeline"]["intervals"].size(), 7U);
}

TEST(TraceReportTest, ASampleIsScaled) {
  const Json json = Reported(TwoThreads(100)).json();
  EXPECT_EQ(json["sample"], 100);
  EXPECT_EQ(json["totals"]["allocations"], 400);
  EXPECT_EQ(json["totals"]["live_bytes"], 502000);
  EXPECT_EQ(json["failures"][0]["count"], 1);
}

TEST(TraceReportTest, TextNamesWhatIsThereAndWhatIsNot) {
  const std::string text = Reported(TwoThreads()).text();
  for (const char* words :
       {"a.trace: program (process 42, hakmem 1.2.3 tracing)", "worker (72)",
        "operator new, MapFail/rlimit_as, served_after_purge",
        "1 release of blocks whose allocation the trace does not have"}) {
    EXPECT_TRUE(absl::StrContains(text, words)) << words << "\n" << text;
  }
  TestTrace cut;
  cut.Start().Events(1, 0, {TestFree(1, 16)}).Thread(1, 7, "main", 5);
  cut.bytes() += "HAKT and then nothing";
  const std::string remarks = Reported(cut).text();
  for (const char* words : {"The trace has no end", "5 events were dropped",
                            "21 bytes in 1 place could not be read"}) {
    EXPECT_TRUE(absl::StrContains(remarks, words)) << words << "\n" << remarks;
  }
}

TEST(TraceReportTest, ChromeGetsCountersThreadsAndFailures) {
  const Reported reported(TwoThreads());
  const Json json = Json::parse(TraceAsChromeJson(reported.report()));
  std::map<std::string, int> phases;
  for (const Json& event : json["traceEvents"]) {
    ++phases[event["ph"]];
    EXPECT_EQ(event["pid"], 42);
    EXPECT_TRUE(event.contains("name"));
  }
  EXPECT_EQ(phases["C"], 3 * 7);
  EXPECT_EQ(phases["i"], 1);
  EXPECT_EQ(phases["X"], 2);
  EXPECT_EQ(phases["M"], 3);
}

std::string Gunzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = bytes;
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// The fields of a message: numbers, and the bytes of what has a length.
struct Fields {
  explicit Fields(std::string_view bytes) {
    ByteReader in(
        {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    while (!in.rest().empty()) {
      const std::uint64_t key = in.Varint();
      if ((key & 7) == 0) {
        numbers[key >> 3].push_back(in.Varint());
      } else {
        EXPECT_EQ(key & 7, 2U);
        texts[key >> 3].push_back(in.Text());
      }
      EXPECT_TRUE(in.ok());
    }
  }
  std::vector<std::uint64_t> Packed(std::uint64_t field) const {
    const std::string& bytes = texts.at(field).at(0);
    ByteReader in(
        {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    std::vector<std::uint64_t> values;
    while (!in.rest().empty()) values.push_back(in.Varint());
    return values;
  }

  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers;
  std::map<std::uint64_t, std::vector<std::string>> texts;
};

TEST(TraceReportTest, PprofHasSitesWithTheirModules) {
  const std::uintptr_t stack[] = {0x401234, 0x900000};
  TraceEvent event = TestAllocation(1, 16, 100);
  event.stack = stack;
  TestTrace trace;
  trace.Start(10, true)
      .Events(1, 0, {event, TestAllocation(2, 32, 7), TestFree(3, 32)})
      .Module(0x500000, 0x1000, "/usr/lib/libother.so")
      .Module(0x401000, 0x1000, "/usr/bin/program")
      .End();
  const Reported reported(trace);
  const Fields profile(Gunzip(TraceAsPprof(reported.report())));
  const std::vector<std::string>& strings = profile.texts.at(6);
  EXPECT_EQ(strings[0], "");
  EXPECT_EQ(profile.texts.at(1).size(), 4U);
  ASSERT_EQ(profile.texts.at(2).size(), 2U);
  const Fields sample(profile.texts.at(2)[0]);
  EXPECT_EQ(sample.Packed(2), (std::vector<std::uint64_t>{10, 1000, 10, 1000}));
  const std::vector<std::uint64_t> locations = sample.Packed(1);
  ASSERT_EQ(locations.size(), 3U);
  const Fields freed(profile.texts.at(2)[1]);
  EXPECT_EQ(freed.Packed(2), (std::vector<std::uint64_t>{10, 70, 0, 0}));
  // The program's mapping is the first.
  const Fields mapping(profile.texts.at(3)[0]);
  EXPECT_EQ(mapping.numbers.at(2)[0], 0x401000U);
  EXPECT_EQ(strings.at(mapping.numbers.at(5)[0]), "/usr/bin/program");
  EXPECT_EQ(strings.at(mapping.numbers.at(6)[0]), "0123456789abcdef");
  const Fields location(profile.texts.at(4)[locations[1] - 1]);
  EXPECT_EQ(location.numbers.at(1)[0], locations[1]);
  EXPECT_EQ(location.numbers.at(2)[0], mapping.numbers.at(1)[0]);
  EXPECT_EQ(location.numbers.at(3)[0], 0x401233U);
  EXPECT_EQ(profile.numbers.at(12)[0], 10U);
}

TEST(TraceReportTest, PprofWithoutStacksHasClasses) {
  const Reported reported(TwoThreads());
  const Fields profile(Gunzip(TraceAsPprof(reported.report())));
  EXPECT_EQ(profile.texts.at(2).size(), 4U);
  const std::vector<std::string>& strings = profile.texts.at(6);
  EXPECT_NE(std::find(strings.begin(), strings.end(), "class 64 bytes"),
            strings.end());
}

TEST(TraceReportTest, TheReplayDoesTheSame) {
  Reported reported(TwoThreads());
  const TraceReplay::File file = reported.Replay();
  EXPECT_EQ(file.left_out, 1U);  // the release of an unknown block
  traces::Reader reader(
      {reinterpret_cast<const std::uint8_t*>(file.bytes.data()),
       file.bytes.size()});
  std::vector<traces::Event> events;
  traces::Event event;
  while (reader.Next(event)) events.push_back(event);
  ASSERT_EQ(reader.error(), nullptr);
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(file.events, 5U);
  EXPECT_EQ(events[0].op, traces::Op::kAllocate);
  EXPECT_EQ(events[1].op, traces::Op::kAllocateZeroed);
  EXPECT_EQ(events[2].op, traces::Op::kAllocateAligned);
  EXPECT_EQ(events[2].alignment_log2, 6);
  EXPECT_EQ(events[3].op, traces::Op::kFree);
  EXPECT_EQ(events[3].thread, 1U);
  EXPECT_EQ(events[3].block, events[0].block);
  EXPECT_EQ(events[4].op, traces::Op::kReallocate);
  EXPECT_EQ(events[4].block, events[1].block);
  EXPECT_EQ(events[4].size, 5000U);
}

TEST(TraceReportTest, AReallocWithoutItsHeirOnlyReleases) {
  TraceEvent from = TestFree(2, 16);
  from.operation = call_trace::kReallocFrom;
  TestTrace trace;
  trace.Start().Events(
      1, 0, {TestAllocation(1, 16, 10), from, TestAllocation(3, 16, 20)});
  Reported reported(trace);
  EXPECT_EQ(reported.analysis().lost_frees(), 0U);
  EXPECT_EQ(reported.analysis().total().live_bytes, 20U);
  EXPECT_EQ(reported.Replay().left_out, 0U);
}

}  // namespace
}  // namespace hakmem::tools
