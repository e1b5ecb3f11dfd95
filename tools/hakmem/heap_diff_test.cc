#include "tools/hakmem/heap_diff.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

constexpr int kMiB = 1 << 20;

std::string Figures(int bytes) {
  const std::string figures =
      absl::StrCat("{\"samples\":1,\"blocks\":1,\"bytes\":", bytes, "}");
  return absl::StrCat("\"live\":", figures, ",\"peak\":", figures,
                      ",\"allocated\":", figures);
}

struct Site {
  int offset;
  int bytes;
  std::vector<int> callers = {};
};

// A process whose program lies at `base`.
std::string Profile(int base, const std::vector<Site>& sites,
                    std::string_view build = "ab12") {
  std::string text = absl::StrCat(
      R"({"schema":"hakmem-heap-profile","version":1,"kind":"start","pid":7,)"
      R"("program":"server","hakmem":"0.1.0","variant":"release",)"
      R"("mean_bytes":524288})",
      "\n", R"({"kind":"module","path":"/srv/server","build_id":")", build,
      "\",\"base\":\"0x", absl::Hex(base), "\",\"begin\":\"0x", absl::Hex(base),
      "\",\"end\":\"0x", absl::Hex(base + 0x10000), "\"}\n");
  int sum = 0;
  for (const Site& site : sites) {
    sum += site.bytes;
    absl::StrAppend(&text, "{\"kind\":\"site\",", Figures(site.bytes),
                    ",\"stack\":[\"0x", absl::Hex(base + site.offset));
    for (const int caller : site.callers) {
      absl::StrAppend(&text, "\",\"0x", absl::Hex(base + caller));
    }
    text += "\"]}\n";
  }
  absl::StrAppend(&text, "{\"kind\":\"end\",\"sites\":", sites.size(),
                  ",\"lost_samples\":0,", Figures(sum), "}\n");
  return text;
}

class HeapDiffTest : public ::testing::Test {
 protected:
  void Read(const std::string& before, const std::string& after) {
    absl::StatusOr<HeapProfiles> read = ReadHeapProfiles(before, modules_);
    ASSERT_TRUE(read.ok()) << read.status();
    before_ = *std::move(read);
    read = ReadHeapProfiles(after, modules_);
    ASSERT_TRUE(read.ok()) << read.status();
    after_ = *std::move(read);
  }
  HeapDiff diff() const {
    return {path_, before_, path_, after_, symbols_, HeapKind::kLive};
  }
  std::vector<std::int64_t> Growths() const {
    std::vector<std::int64_t> growths;
    for (const HeapGrowth& growth : GrowthBySite(diff())) {
      growths.push_back(growth.bytes());
    }
    return growths;
  }

  const std::string path_ = "server.heap";
  HeapModules modules_;
  HeapProfiles before_;
  HeapProfiles after_;
  HeapSymbols symbols_{modules_, {.program = "none", .symbols_folder = ""}};
};

TEST_F(HeapDiffTest, SitesMatchWhereverTheProgramLay) {
  Read(Profile(0x50000, {{0x10, 5 * kMiB}, {0x20, kMiB}, {0x30, 7}}),
       Profile(0x90000, {{0x20, 4 * kMiB}, {0x30, 7}, {0x40, kMiB}}));
  EXPECT_THAT(Growths(), ElementsAre(3 * kMiB, kMiB, -5 * kMiB));
  EXPECT_EQ(TotalGrowth(diff()).bytes(), -kMiB);
}

TEST_F(HeapDiffTest, TheTextShowsTheLargestGrowthFirst) {
  Read(Profile(0x50000, {{0x10, 5 * kMiB}, {0x20, kMiB}}),
       Profile(0x90000, {{0x20, 4 * kMiB}}));
  const std::string text = HeapDiffAsText(diff(), 1);
  EXPECT_THAT(text,
              StartsWith("-2.0 MiB ±0 bytes live: 6.0 MiB in server[7], then "
                         "4.0 MiB"));
  EXPECT_THAT(text, HasSubstr("  +3.0 MiB  ±0 bytes   yes  1.0 MiB  4.0 MiB    "
                              " 1, 1  server+0x20\n  and 1 more"));
}

// One block is sampled with a chance of 1/4 wherever it is, so each sample's
// variance is 12 bytes squared, for 4 bytes.
std::string Sampled(int pid, int live, int allocated, std::string_view time) {
  const auto figures = [](int samples) {
    return absl::StrCat("{\"samples\":", samples, ",\"blocks\":", 4 * samples,
                        ",\"bytes\":", 4 * samples, "}");
  };
  const std::string kinds =
      absl::StrCat("\"live\":", figures(live), ",\"peak\":", figures(live),
                   ",\"allocated\":", figures(allocated));
  return absl::StrCat(
      R"({"schema":"hakmem-heap-profile","version":1,"kind":"start","pid":)",
      pid, R"(,"program":"server","hakmem":"0.1.0","variant":"release",)",
      R"("mean_bytes":4)", time, "}\n", "{\"kind\":\"site\",", kinds,
      ",\"stack\":[\"0x10\"]}\n",
      R"({"kind":"end","sites":1,"lost_samples":0,)", kinds, "}\n");
}

TEST_F(HeapDiffTest, WhatLivedAllTheTimeIsNoErrorOfTheGrowth) {
  // Of 100 blocks all stay, and one comes.
  Read(Sampled(7, 100, 100, ""), Sampled(7, 101, 101, ""));
  EXPECT_DOUBLE_EQ(GrowthBySite(diff()).front().variance, 12);
  EXPECT_DOUBLE_EQ(TotalGrowth(diff()).variance, 12);
  // 30 come and go, or 15 come for 15 others.
  Read(Sampled(7, 100, 100, ""), Sampled(7, 101, 131, ""));
  EXPECT_DOUBLE_EQ(GrowthBySite(diff()).front().variance, 61 * 12);
  // No more than if all were others, as they are in another process.
  Read(Sampled(7, 100, 100, ""), Sampled(7, 101, 1001, ""));
  EXPECT_DOUBLE_EQ(GrowthBySite(diff()).front().variance, 201 * 12);
  Read(Sampled(7, 100, 100, ""), Sampled(8, 101, 101, ""));
  EXPECT_DOUBLE_EQ(GrowthBySite(diff()).front().variance, 201 * 12);
  // A process that has its number: it has allocated less.
  Read(Sampled(7, 100, 100, ""), Sampled(7, 90, 90, ""));
  EXPECT_DOUBLE_EQ(GrowthBySite(diff()).front().variance, 190 * 12);
}

TEST_F(HeapDiffTest, IsSureFromTwiceItsErrorOn) {
  Read(Sampled(7, 100, 100, ""), Sampled(7, 101, 101, ""));
  EXPECT_FALSE(TotalGrowth(diff()).is_sure());
  Read(Sampled(7, 100, 100, ""), Sampled(7, 110, 110, ""));
  EXPECT_TRUE(TotalGrowth(diff()).is_sure());
}

TEST_F(HeapDiffTest, WhatIsCountedStandsFirstAndTellsWhichProcessGrows) {
  const auto counted = [](int pid, int live, int bytes) {
    constexpr std::string_view kEnd = "\"lost_samples\":0,";
    return absl::StrReplaceAll(
        Sampled(pid, live, live, ""),
        {{kEnd, absl::StrCat(kEnd, "\"counted\":{\"blocks\":1,\"bytes\":",
                             bytes, "},")}});
  };
  Read(counted(7, 100, 410) + counted(8, 100, 390),
       counted(7, 110, 450) + counted(8, 100, 390));
  after_.last.front().title = "worker";
  const std::string text = HeapDiffAsText(diff(), 5);
  EXPECT_THAT(text, StartsWith("+40 bytes live, counted: 800 bytes in 2 "
                               "processes, then 840 bytes in 2 processes\n  by "
                               "samples: +40 bytes ±"));
  EXPECT_THAT(text, HasSubstr("\nGrowth by processes\n"));
  EXPECT_THAT(text, HasSubstr("410 bytes  450 bytes  server[7] worker\n"));
  EXPECT_THAT(text, Not(HasSubstr("server[8]")));
  // Its rows add up to the first line's growth.
  Read(counted(7, 100, 410) + counted(8, 100, 390), counted(9, 110, 450));
  const std::string others = HeapDiffAsText(diff(), 5);
  EXPECT_THAT(others, HasSubstr("+450 bytes    0 bytes  450 bytes  server[9]"));
  EXPECT_THAT(others, HasSubstr("-390 bytes  390 bytes    0 bytes  server[8]"));
  EXPECT_THAT(others, HasSubstr("-410 bytes  410 bytes    0 bytes  server[7]"));
}

TEST_F(HeapDiffTest, TheTimesTellHowFastItGrows) {
  Read(Sampled(7, 100, 100, ""),
       Sampled(7, 110, 110, R"(,"time_ns":5000000000)"));
  EXPECT_EQ(SecondsBetween(diff()), 0);
  Read(Sampled(7, 100, 100, R"(,"time_ns":5000000000)"),
       Sampled(7, 110, 110, R"(,"time_ns":65000000000)"));
  EXPECT_EQ(SecondsBetween(diff()), 60);
  EXPECT_THAT(HeapDiffAsText(diff(), 5),
              StartsWith("+40 bytes ±22 bytes live in 1m, +2.3 KiB an hour: "));
  // The other way round nothing is told that would be wrong.
  Read(Sampled(7, 100, 100, R"(,"time_ns":65000000000)"),
       Sampled(7, 110, 110, R"(,"time_ns":5000000000)"));
  EXPECT_EQ(SecondsBetween(diff()), -60);
  EXPECT_THAT(HeapDiffAsText(diff(), 5),
              StartsWith("+40 bytes ±22 bytes live: "));
  // Of several processes, of all that time.
  Read(Sampled(7, 100, 100, R"(,"time_ns":5000000000)") +
           Sampled(8, 100, 100, R"(,"time_ns":65000000000)"),
       Sampled(7, 110, 110, R"(,"time_ns":125000000000)") +
           Sampled(8, 110, 110, R"(,"time_ns":75000000000)"));
  EXPECT_EQ(SecondsBetween(diff()), 120);
}

TEST_F(HeapDiffTest, AFunctionOfSeveralPlacesGrowsByThemAll) {
  Read(Profile(0x50000, {}),
       Profile(0x90000, {{0x10, 4 * kMiB, {0x30, 0x20, 0x30, 0x40, 0x50}},
                         {0x10, 8 * kMiB, {0x30, 0x40, 0x50}},
                         {0x20, 2 * kMiB, {0x30, 0x40, 0x50}},
                         {0x60, kMiB, {0x70, 0x50}}}));
  for (const auto& [offset, name] :
       std::vector<std::pair<std::uint64_t, std::string>>{
           {0x10, "parse_string"},
           {0x20, "parse_object"},
           {0x30, "parse_value"},
           {0x40, "serve"},
           {0x50, "main"},
           {0x60, "log"}}) {
    modules_.AddNames({.module = 0, .offset = offset},
                      {SourceLine{.function = name, .place = ""}});
  }
  symbols_.Resolve(after_);
  // serve has what parse_value has, and log is one place.
  std::vector<std::string> functions;
  for (const HeapGrowth& growth :
       GrowthByFunction(diff(), GrowthBySite(diff()))) {
    functions.push_back(absl::StrCat(
        growth.function, " ", growth.bytes() / kMiB, " MiB of ", growth.sites));
  }
  EXPECT_THAT(
      functions,
      ElementsAre("main 15 MiB of 4", "parse_value 14 MiB of 3",
                  "parse_string 12 MiB of 2", "parse_object 6 MiB of 2"));
  EXPECT_THAT(HeapDiffAsText(diff(), 2),
              HasSubstr("\nGrowth by functions of several places\n"
                        "     growth         ±  sure  places  function\n"
                        "  +15.0 MiB  ±0 bytes   yes       4  main\n"
                        "  +14.0 MiB  ±0 bytes   yes       3  parse_value\n"
                        "  and 2 more"));
  const auto json = nlohmann::json::parse(HeapDiffAsJson(diff()));
  EXPECT_EQ(json["functions"][1]["name"], "parse_value");
  EXPECT_EQ(json["functions"][1]["growth_bytes"], 14 * kMiB);
}

TEST_F(HeapDiffTest, AFunctionWhosePlacesMakeUpForEachOtherHasNotGrown) {
  Read(Profile(0x50000, {{0x10, kMiB, {0x50}}}),
       Profile(0x50000, {{0x20, kMiB, {0x50}}}));
  const std::vector<HeapGrowth> growths = GrowthBySite(diff());
  EXPECT_EQ(growths.size(), 2U);
  EXPECT_THAT(GrowthByFunction(diff(), growths), IsEmpty());
}

TEST_F(HeapDiffTest, AProgramThatLiesElsewhereHasBegunAnew) {
  Read(Profile(0x50000, {{0x10, 5}}), Profile(0x90000, {{0x10, 5}}));
  EXPECT_FALSE(AreOfOneRun(before_.last[0], after_.last[0]));
  EXPECT_THAT(HeapDiffRemarks(diff()),
              ElementsAre(HasSubstr("server[7] has begun anew")));
  // A process may name itself anew.
  std::string renamed = Profile(0x50000, {{0x10, 5}, {0x20, 5}});
  renamed.replace(renamed.find("server"), 6, "worker");
  Read(Profile(0x50000, {{0x10, 5}}), renamed);
  EXPECT_TRUE(AreOfOneRun(before_.last[0], after_.last[0]));
  // Where a program lies is not known of all.
  Read(Profile(0, {{0x10, 5}}), Profile(0, {{0x10, 5}}));
  EXPECT_TRUE(AreOfOneRun(before_.last[0], after_.last[0]));
}

TEST_F(HeapDiffTest, AnotherBuildIsSaid) {
  Read(Profile(0x50000, {{0x10, 5}}), Profile(0x50000, {{0x10, 5}}, "cd34"));
  EXPECT_THAT(Growths(), ElementsAre(5, -5));
  EXPECT_THAT(HeapDiffRemarks(diff()),
              ElementsAre(HasSubstr("/srv/server is of several builds")));
}

TEST_F(HeapDiffTest, ACutFileIsSaid) {
  const std::string whole = Profile(0x50000, {{0x10, 5}});
  Read(whole, whole.substr(0, whole.size() - 9));
  EXPECT_THAT(HeapDiffAsText(diff(), 5),
              HasSubstr("server.heap, server[7]: The profile is cut off"));
}

TEST_F(HeapDiffTest, JsonHasEverySite) {
  Read(Profile(0x50000, {{0x10, 5 * kMiB}}),
       Profile(0x90000, {{0x20, 4 * kMiB}}));
  const auto json = nlohmann::json::parse(HeapDiffAsJson(diff()));
  EXPECT_EQ(json["growth_bytes"], -kMiB);
  ASSERT_THAT(json["sites"], SizeIs(2));
  EXPECT_EQ(json["sites"][0]["growth_bytes"], 4 * kMiB);
  EXPECT_EQ(json["sites"][0]["stack"][0]["offset"], "0x20");
}

}  // namespace
}  // namespace hakmem::tools
