// Heap profiles: reading, what is made of them, and the report's forms.

#include "tools/hakmem/heap_report.h"

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::string_view kModule =
    R"({"kind":"module","path":"/srv/server","build_id":"ab12",)"
    R"("base":"0x10000","begin":"0x11000","end":"0x20000"})"
    "\n";

std::string Start(int pid = 7, std::string_view program = "server") {
  return absl::StrCat(
      R"({"schema":"hakmem-heap-profile","version":1,"kind":"start","pid":)",
      pid, R"(,"program":")", program,
      R"(","hakmem":"0.1.0","variant":"release","mean_bytes":524288})", "\n");
}

std::string Figures(int samples, int blocks, int bytes) {
  return absl::StrCat("{\"samples\":", samples, ",\"blocks\":", blocks,
                      ",\"bytes\":", bytes, "}");
}

// Live; twice that at the peak, thrice that since the start.
std::string Kinds(int samples, int blocks, int bytes) {
  return absl::StrCat(
      "\"live\":", Figures(samples, blocks, bytes),
      ",\"peak\":", Figures(2 * samples, 2 * blocks, 2 * bytes),
      ",\"allocated\":", Figures(3 * samples, 3 * blocks, 3 * bytes));
}

std::string Site(int samples, int blocks, int bytes,
                 const std::vector<std::string>& stack) {
  return absl::StrCat(
      "{\"kind\":\"site\",", Kinds(samples, blocks, bytes), ",\"stack\":[",
      stack.empty() ? ""
                    : absl::StrCat("\"", absl::StrJoin(stack, "\",\""), "\""),
      "]}\n");
}

std::string End(int sites, int samples, int blocks, int bytes, int lost = 0) {
  return absl::StrCat("{\"kind\":\"end\",\"sites\":", sites,
                      ",\"lost_samples\":", lost, ",",
                      Kinds(samples, blocks, bytes), "}\n");
}

// Two sites of functions at 0x200 and 0x300 that one at 0x400 calls.
std::string Whole() {
  return absl::StrCat(
      Start(), kModule, Site(1, 100, 1 << 20, {"0x10200", "0x12400"}),
      Site(4, 4, 3 << 20, {"0x12300", "0x12400", "0x12400", "0x99"}),
      End(2, 5, 104, 4 << 20));
}

class HeapReportTest : public ::testing::Test {
 protected:
  void Read(const std::string& text) {
    absl::StatusOr<HeapProfiles> read = ReadHeapProfiles(text, modules_);
    ASSERT_TRUE(read.ok()) << read.status();
    profiles_ = *std::move(read);
  }
  std::string Error(std::string_view text) {
    return std::string(ReadHeapProfiles(text, modules_).status().message());
  }
  const HeapProfile& profile() const { return profiles_.last.at(0); }
  HeapReport report(HeapKind by = HeapKind::kLive) const {
    return {files_, profiles_, symbols_, by};
  }
  std::string Text(HeapKind by = HeapKind::kLive, std::size_t rows = 20) const {
    return HeapAsText(report(by), rows);
  }

  const std::vector<std::string> files_ = {"server.heap"};
  HeapModules modules_;
  HeapProfiles profiles_;
  HeapSymbols symbols_{modules_, {.program = "none", .symbols_folder = ""}};
};

TEST_F(HeapReportTest, AProfileIsReadWhole) {
  Read(Whole());
  ASSERT_THAT(profiles_.last, SizeIs(1));
  EXPECT_EQ(profile().pid, 7u);
  EXPECT_EQ(profile().mean_bytes, 524288u);
  EXPECT_TRUE(profile().whole);
  EXPECT_EQ(profile().totals.allocated.bytes, 12u << 20);
  ASSERT_THAT(profile().sites, SizeIs(2));
  const std::vector<Frame>& stack = profile().sites[1].stack;
  ASSERT_THAT(stack, SizeIs(4));
  EXPECT_EQ(modules_.list()[stack[0].module].path, "/srv/server");
  EXPECT_EQ(stack[0].offset, 0x2300u);
  EXPECT_EQ(stack[3].module, Frame::kNoModule);
  EXPECT_THAT(HeapRemarks(profile()), IsEmpty());
}

TEST_F(HeapReportTest, TheLastProfileOfEachProcessCounts) {
  Read(absl::StrCat("a program's own line\n", Start(7), End(0, 0, 0, 0),
                    Whole(), "{not ours}\n", Start(8), End(0, 0, 0, 0)));
  EXPECT_EQ(profiles_.in_file, 3u);
  ASSERT_THAT(profiles_.last, SizeIs(2));
  EXPECT_EQ(profiles_.last[0].pid, 7u);
  EXPECT_THAT(profiles_.last[0].sites, SizeIs(2));
  EXPECT_TRUE(profiles_.last[0].whole);
  EXPECT_THAT(Text(), HasSubstr("read were 3 profiles of 2 processes"));
}

TEST_F(HeapReportTest, WhatIsNoProfileIsSaid) {
  EXPECT_THAT(Error(""), StartsWith("is empty"));
  EXPECT_THAT(Error("hello\n{}\n{\"kind\":\"site\"}\n"),
              StartsWith("is not a heap profile"));
  EXPECT_THAT(Error(R"({"schema":"hakmem-failure","version":1})"),
              StartsWith("is not a heap profile"));
  EXPECT_THAT(Error(R"({"schema":"hakmem-heap-profile","version":2})"),
              StartsWith("is a heap profile of version 2"));
}

TEST_F(HeapReportTest, ACutProfileIsShownAndSaidToBeCut) {
  const std::string whole = Whole();
  Read(whole.substr(0, whole.size() - 40));
  EXPECT_FALSE(profile().whole);
  EXPECT_EQ(profile().totals.live.bytes, 4u << 20);
  EXPECT_THAT(Text(), HasSubstr("cut off"));
  // A line in the middle is missing.
  Read(absl::StrCat(Start(), kModule, Site(1, 1, 1 << 20, {"0x11200"}),
                    End(2, 5, 104, 4 << 20)));
  EXPECT_FALSE(profile().whole);
  EXPECT_THAT(Text(), HasSubstr("damaged"));
}

TEST_F(HeapReportTest, AProfileMayBeginBehindHalfALine) {
  Read(absl::StrCat("ready> ", Whole()));
  EXPECT_TRUE(profile().whole);
  // Of a process that was killed while it wrote to the same file.
  const std::string cut = Whole().substr(0, Whole().rfind("\"kind\":\"end\""));
  Read(absl::StrCat(cut, Start(8), kModule, Site(1, 1, 2, {"0x12300"}),
                    End(1, 1, 1, 2)));
  ASSERT_THAT(profiles_.last, SizeIs(2));
  EXPECT_EQ(profile().pid, 7u);
  EXPECT_FALSE(profile().whole);
  EXPECT_THAT(profile().sites, SizeIs(2));
  EXPECT_EQ(profiles_.last[1].pid, 8u);
  EXPECT_TRUE(profiles_.last[1].whole);
}

TEST_F(HeapReportTest, DamagedLinesAreCounted) {
  for (const std::string_view line :
       {R"({"kind":"site","stack":[]})", R"({"kind":"module","path":5})",
        R"({"kind":"site","live":{"samples":-1,"blocks":1,"bytes":1}})",
        R"({"kind":)", R"({"kind":"end","sites":"2"})"}) {
    Read(absl::StrCat(Start(), line, "\n", End(0, 0, 0, 0)));
    EXPECT_EQ(profile().unreadable_lines, 1u) << line;
    EXPECT_FALSE(profile().whole) << line;
  }
  // A kind of a later version is none.
  Read(absl::StrCat(Start(), "{\"kind\":\"thread\"}\n", End(0, 0, 0, 0)));
  EXPECT_TRUE(profile().whole);
}

TEST_F(HeapReportTest, NoSamplesHaveAReason) {
  Read(absl::StrCat(Start(), End(0, 0, 0, 0)));
  EXPECT_FALSE(HasSamples(profile()));
  EXPECT_THAT(Text(), StartsWith("server[7] has no samples: it allocated too "
                                 "little for one byte in 512.0 KiB"));
  profiles_.last[0].mean_bytes = 0;
  EXPECT_THAT(Text(), HasSubstr("HAKMEM_PROFILE_BYTES=0"));
  Read(Start());
  EXPECT_FALSE(HasSamples(profile()));
  EXPECT_THAT(Text(), StartsWith("server[7] has no samples: the profile is "
                                 "cut off before the first one"));
}

TEST_F(HeapReportTest, TheTextBeginsWithTheTotals) {
  Read(Whole());
  EXPECT_THAT(Text(),
              StartsWith("server[7]: 4.0 MiB ±50% live, 8.0 MiB ±35% at the "
                         "peak, 12.0 MiB ±29% allocated; one byte in 512.0 KiB "
                         "is sampled; ± holds for 9 estimates in 10\n"));
}

TEST_F(HeapReportTest, WhatIsCountedStandsFirst) {
  Read(Whole());
  profiles_.last[0].counted = {.blocks = 1234, .bytes = 9 << 20};
  EXPECT_THAT(Text(),
              StartsWith("server[7]: 9.0 MiB live in 1,234 blocks, counted\n"
                         "  by samples: 4.0 MiB ±50% live, 8.0 MiB ±35% at "));
  profiles_.last[0].resident_bytes = 3 << 20;
  EXPECT_THAT(Text(), HasSubstr("counted (3.0 MiB resident: what was never "
                                "touched takes no memory)\n"));
  Read(absl::StrCat(Start(), End(0, 0, 0, 0)));
  profiles_.last[0].counted = {.blocks = 1, .bytes = 48};
  EXPECT_THAT(Text(), StartsWith("server[7]: 48 bytes live in 1 block, "
                                 "counted, but no samples: "));
}

// A peak is noted once it is a 32nd above the last one.
TEST_F(HeapReportTest, NoMoreIsLiveThanAtThePeak) {
  std::string text = Whole();
  // 4 MiB are live; the peak of 8 MiB was 3, of which one place had 2.
  for (const std::string_view peak :
       {R"("peak":{"samples":10,"blocks":208,"bytes":8388608})",
        R"("peak":{"samples":8,"blocks":8,"bytes":6291456})"}) {
    text.replace(text.find(peak), peak.size(),
                 R"("peak":{"samples":1,"blocks":1,"bytes":2097152})");
  }
  Read(text);
  EXPECT_EQ(profile().totals.peak.bytes, 4u << 20);
  EXPECT_EQ(profile().sites[0].figures.peak.bytes, 1u << 20);
  EXPECT_EQ(profile().sites[1].figures.peak.bytes, 3u << 20);
}

TEST_F(HeapReportTest, NothingThatIsThereHasZeroBytes) {
  Read(Whole());
  EXPECT_THAT(Text(), Not(HasSubstr("0 bytes")));
  std::string text = Whole();
  const std::string_view live =
      R"("live":{"samples":5,"blocks":104,"bytes":4194304})";
  text.replace(text.find(live), live.size(),
               R"("live":{"samples":0,"blocks":0,"bytes":0})");
  Read(text);
  EXPECT_THAT(Text(), StartsWith("server[7]: no sample live, 8.0 MiB "));
}

TEST_F(HeapReportTest, TheSiteWithMostComesFirst) {
  Read(Whole());
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("\nBytes live, by places\n"));
  EXPECT_THAT(text, HasSubstr("  3.0 MiB  75.0%    ±0%       4        4  "
                              "server+0x2300\n"));
  EXPECT_LT(text.find("server+0x2300"), text.find("0x10200"));
  EXPECT_THAT(Text(HeapKind::kPeak, 1), HasSubstr("live at the peak"));
  EXPECT_THAT(Text(HeapKind::kPeak, 1), HasSubstr("6.0 MiB  75.0%"));
  EXPECT_THAT(Text(HeapKind::kPeak, 1), HasSubstr("and 1 more"));
}

TEST_F(HeapReportTest, AFunctionIsOnceInAStack) {
  Read(Whole());
  const std::vector<HeapFunction> functions =
      FunctionsBy(profile(), symbols_, HeapKind::kLive);
  ASSERT_THAT(functions, SizeIs(4));
  EXPECT_EQ(functions[0].name, "server+0x2300");
  EXPECT_EQ(functions[0].self.live.bytes, 3u << 20);
  EXPECT_EQ(functions[2].name, "server+0x2400");
  EXPECT_EQ(functions[2].self.live.bytes, 0u);
  EXPECT_EQ(functions[2].cumulative.live.bytes, 4u << 20);
}

TEST_F(HeapReportTest, SmallBlocksAreUncertainAndLargeOnesAreNot) {
  Read(Whole());
  EXPECT_NEAR(StandardError(profile().sites[0].figures.live), 1 << 20, 6000);
  EXPECT_EQ(StandardError(profile().sites[1].figures.live), 0);
}

// One block of 1 MiB that was sampled for sure beside three small ones, one of
// them thinned: 16 means, and one, and one.
TEST_F(HeapReportTest, EachSampleAddsItsOwnVariance) {
  std::string text = Whole();
  const std::size_t at = text.find("\"stack\"");
  text.insert(at, R"("variances":{"live":16908288,"peak":0,"allocated":1},)");
  Read(text);
  const double mean = static_cast<double>(profile().mean_bytes);
  EXPECT_NEAR(StandardError(profile().sites[0].figures.live),
              std::sqrt(258) * mean, 1);
  EXPECT_EQ(StandardError(profile().sites[0].figures.peak), 0);
  // The second site's block is large. The total is as far off as the sites.
  EXPECT_NEAR(StandardError(profile().totals.live), std::sqrt(258) * mean, 1);
}

TEST_F(HeapReportTest, ThePassersOnAreNoPlaces) {
  Read(absl::StrCat(
      Start(),
      R"({"kind":"module","path":"/x/libhakmem.so.0.1.0","base":"0x1000",)"
      R"("begin":"0x1000","end":"0x2000"})",
      "\n", Site(1, 1, 1, {"0x1010", "0x99"}), Site(1, 1, 1, {"0x1010"}),
      End(2, 2, 2, 2)));
  EXPECT_THAT(symbols_.Calls(profile().sites[0].stack), SizeIs(1));
  // Better than nothing.
  EXPECT_THAT(symbols_.Calls(profile().sites[1].stack), SizeIs(1));
}

TEST_F(HeapReportTest, FocusIgnoreAndHideChooseThePlacesOfAllForms) {
  Read(Whole());
  const auto shown = [this](std::string_view focus, std::string_view ignore,
                            std::string_view hide) {
    FramePolicy policy;
    policy.focus = *Pattern::Make(std::string(focus));
    policy.ignore = *Pattern::Make(std::string(ignore));
    policy.hide = *Pattern::Make(std::string(hide));
    const HeapSymbols symbols(
        modules_, {.program = "none", .symbols_folder = ""}, policy);
    const HeapProfiles profiles = symbols.Shown(profiles_);
    const HeapReport report = {files_, profiles, symbols, HeapKind::kLive};
    const auto json = nlohmann::json::parse(HeapAsJson(report));
    EXPECT_NE(HeapAsPprof(report), HeapAsPprof(this->report()));
    return absl::StrCat(json["profiles"][0]["live"]["bytes"].get<int>() >> 20,
                        ": ", HeapAsFolded(report));
  };
  EXPECT_EQ(shown("0x2300", "", ""),
            "3: 0x99;server+0x2400;server+0x2400;server+0x2300 3145728\n");
  EXPECT_EQ(shown("server", "2300", ""), "1: server+0x2400;0x10200 1048576\n");
  EXPECT_EQ(shown("", "", "2400$"),
            "4: 0x10200 1048576\n0x99;server+0x2300 3145728\n");
  EXPECT_EQ(shown("", "", "/srv/server|0x10200"), "3: 0x99 3145728\n");
}

TEST_F(HeapReportTest, PlacesThatFoldIntoOneAreOne) {
  Read(absl::StrCat(
      Start(),
      R"({"kind":"module","path":"/x/libhakmem.so.0.1.0","base":"0x1000",)"
      R"("begin":"0x1000","end":"0x2000"})",
      "\n", Site(1, 1, 1, {"0x1010", "0x99"}),
      Site(1, 2, 3, {"0x1020", "0x99"}), End(2, 2, 3, 4)));
  const HeapProfiles shown = symbols_.Shown(profiles_);
  ASSERT_THAT(shown.last[0].sites, SizeIs(1));
  EXPECT_EQ(shown.last[0].sites[0].figures.live.bytes, 4u);
  EXPECT_THAT(shown.last[0].sites[0].addresses, ElementsAre(0x99u));
}

// Two calls in one function, and the same function of two processes.
TEST_F(HeapReportTest, PlacesThatLookTheSameAreOne) {
  Read(absl::StrCat(Start(), kModule, Site(1, 1, 1, {"0x11010"}),
                    Site(1, 2, 3, {"0x11020"}), End(2, 2, 3, 4)));
  for (const HeapSite& site : profile().sites) {
    modules_.AddNames(site.stack[0], {{.function = "grow", .place = ""}});
  }
  symbols_.Resolve(profiles_);
  EXPECT_THAT(symbols_.Shown(profiles_).last[0].sites, SizeIs(1));
  // Not for who wants to see instructions.
  EXPECT_THAT(symbols_.Shown(profiles_, HeapSymbols::OnePlace::kOfAddresses)
                  .last[0]
                  .sites,
              SizeIs(2));
  const HeapProfiles before = symbols_.Shown(profiles_);
  HeapProfiles after = before;
  after.last[0].sites[0].stack[0].offset += 1;
  modules_.AddNames(after.last[0].sites[0].stack[0],
                    {{.function = "grow", .place = ""}});
  symbols_.Resolve(after);
  EXPECT_THAT(GrowthBySite({.before_path = "a",
                            .before = before,
                            .after_path = "b",
                            .after = after,
                            .symbols = symbols_,
                            .by = HeapKind::kLive}),
              IsEmpty());
}

TEST_F(HeapReportTest, ARuntimesFramesGoWhereItsFunctionsHaveNames) {
  Read(absl::StrCat(
      Start(),
      R"({"kind":"module","path":"/usr/bin/python3.12","base":"0x10000",)"
      R"("begin":"0x10000","end":"0x20000"})",
      "\n",
      R"({"kind":"module","path":"/tmp/perf-7.map","base":"0x0",)"
      R"("begin":"0x30000","end":"0x40000"})",
      "\n", Site(1, 1, 1, {"0x10010", "0x30010", "0x10020", "0x30020"}),
      Site(1, 1, 1, {"0x10010", "0x10020"}), End(2, 2, 2, 2)));
  const std::vector<Frame>& stack = profile().sites[0].stack;
  const char* const names[] = {"PyUnicode_New", "remember", "py_trampoline",
                               "main"};
  for (std::size_t i = 0; i < stack.size(); ++i) {
    modules_.AddNames(stack[i], {{.function = names[i], .place = ""}});
  }
  symbols_.Resolve(profiles_);
  EXPECT_THAT(symbols_.Texts(stack), ElementsAre("remember", "main"));
  EXPECT_THAT(symbols_.Texts(profile().sites[1].stack), SizeIs(2));
  FramePolicy all;
  all.fold = false;
  HeapSymbols unfolded(modules_, {.program = "none", .symbols_folder = ""},
                       all);
  unfolded.Resolve(profiles_);
  EXPECT_THAT(unfolded.Texts(stack), SizeIs(4));
}

TEST_F(HeapReportTest, WhatBeginsEachStackIsNotShown) {
  Read(absl::StrCat(
      Start(), Site(1, 1, 1, {"0x10", "0x20", "0x30", "0x40", "0x50"}),
      Site(1, 1, 1, {"0x40", "0x50"}), Site(1, 1, 1, {"0x30", "0x40", "0x60"}),
      Site(1, 1, 1, {"0x70", "0x40", "0x50"}), End(4, 4, 4, 4)));
  const std::vector<Frame>& stack = profile().sites[0].stack;
  modules_.AddNames(profile().sites[3].stack[0],
                    {{.function = "operator new(unsigned long)", .place = ""}});
  const char* const names[] = {"grow", "clone3", "main",
                               "__libc_start_main_impl", "_start"};
  for (std::size_t i = 0; i < stack.size(); ++i) {
    modules_.AddNames(stack[i], {{.function = names[i], .place = ""}});
  }
  symbols_.Resolve(profiles_);
  EXPECT_THAT(symbols_.Texts(stack), ElementsAre("grow", "clone3", "main"));
  // Something is always left.
  EXPECT_THAT(symbols_.Texts(profile().sites[1].stack), SizeIs(2));
  // A stripped program has no name for the last.
  EXPECT_THAT(symbols_.Texts(profile().sites[2].stack), ElementsAre("main"));
  // A function that passes memory on is not folded into them.
  EXPECT_THAT(symbols_.Texts(profile().sites[3].stack),
              ElementsAre("operator new(unsigned long)"));
  FramePolicy all;
  all.fold = false;
  HeapSymbols unfolded(modules_, {.program = "none", .symbols_folder = ""},
                       all);
  unfolded.Resolve(profiles_);
  EXPECT_THAT(unfolded.Texts(stack), SizeIs(5));
}

TEST_F(HeapReportTest, NamesCannotSteerATerminal) {
  std::string text = Whole();
  text.replace(text.find("/srv/server"), 11, "/srv/\\u001b[2Jx");
  text.replace(text.find("\"server\""), 8, "\"\\u001b]0;x\"");
  Read(text);
  EXPECT_THAT(Text(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Text(), HasSubstr("\\x1b[2Jx+0x2300"));
}

TEST_F(HeapReportTest, FoldedStacksBeginAtTheRoot) {
  Read(Whole());
  EXPECT_EQ(HeapAsFolded(report()),
            "0x99;server+0x2400;server+0x2400;server+0x2300 3145728\n"
            "server+0x2400;0x10200 1048576\n");
  Read(absl::StrCat(Whole(), Start(8, "a;b"), Site(1, 1, 5, {}),
                    End(1, 1, 1, 5)));
  EXPECT_THAT(HeapAsFolded(report(HeapKind::kPeak)),
              StartsWith("a:b[8];(no stack) 10\nserver[7];"));
}

TEST_F(HeapReportTest, PprofGetsTypesModulesAndBuilds) {
  Read(Whole());
  const std::string bytes = HeapAsPprof(report());
  for (const char* const text :
       {"inuse_objects", "inuse_space", "alloc_objects", "alloc_space",
        "peak_space", "/srv/server", "ab12", "pid"}) {
    EXPECT_THAT(bytes, HasSubstr(text));
  }
}

TEST_F(HeapReportTest, JsonHasEverySite) {
  Read(Whole());
  const auto json = nlohmann::json::parse(HeapAsJson(report()));
  EXPECT_EQ(json["schema"], "hakmem-heap-report");
  const auto& profile = json["profiles"][0];
  EXPECT_EQ(profile["complete"], true);
  EXPECT_EQ(profile["live"]["bytes"], 4 << 20);
  EXPECT_GT(profile["live"]["standard_error_bytes"], 1000000);
  ASSERT_THAT(profile["sites"], SizeIs(2));
  EXPECT_EQ(profile["sites"][0]["stack"][0]["module"], "/srv/server");
  EXPECT_EQ(profile["sites"][0]["stack"][0]["offset"], "0x2300");
  EXPECT_EQ(profile["functions"][0]["cumulative"]["peak"]["bytes"], 6 << 20);
}

TEST_F(HeapReportTest, LostSamplesAndMissingStacksAreSaid) {
  Read(
      absl::StrCat(Start(), Site(1, 1, 1 << 20, {}), End(1, 1, 1, 1 << 20, 3)));
  EXPECT_THAT(Text(), HasSubstr("(no stack)"));
  EXPECT_THAT(HeapRemarks(profile()), ElementsAre(HasSubstr("3 samples")));
}

}  // namespace
}  // namespace hakmem::tools
