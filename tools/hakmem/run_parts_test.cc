// The parts of `hakmem run` that need no program to run.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/child.h"
#include "tools/hakmem/environment.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/run_output.h"
#include "tools/hakmem/run_reports.h"
#include "tools/hakmem/run_summary.h"
#include "tools/hakmem/session.h"
#include "tools/hakmem/subprocess.h"
#include "tools/hakmem/test_records.h"

namespace hakmem::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(EnvironmentTest, TheLibraryComesBeforeOthers) {
  const char* entries[] = {"A=1", "LD_PRELOAD=/x.so:/y.so", "NOTHING", "A=2",
                           nullptr};
  Environment environment(entries);
  environment.Preload("/h.so");
  EXPECT_THAT(environment.Entries(),
              ElementsAre("A=1", "LD_PRELOAD=/h.so:/x.so:/y.so"));
  Environment empty(entries + 4);
  empty.Preload("/h.so");
  EXPECT_THAT(empty.Entries(), ElementsAre("LD_PRELOAD=/h.so"));
}

TEST(EnvironmentTest, OptionsAreCheckedAsHakmemWould) {
  const char* none[] = {nullptr};
  Environment environment(none);
  EXPECT_TRUE(environment.SetOption("HAKMEM_HEAP_LIMIT=2G").ok());
  EXPECT_TRUE(environment.SetOption("DECAY_MS=0").ok());
  EXPECT_EQ(environment.Get("HAKMEM_HEAP_LIMIT"), "2G");
  EXPECT_EQ(environment.Get("HAKMEM_DECAY_MS"), "0");
  EXPECT_THAT(environment.SetOption("HEAP_LIMIT=lots").message(),
              HasSubstr("HAKMEM_HEAP_LIMIT cannot be lots"));
  EXPECT_THAT(environment.SetOption("HEEP_LIMIT=1G").message(),
              HasSubstr("HAKMEM_HEEP_LIMIT is not an option"));
  EXPECT_THAT(environment.SetOption("HEAP_LIMIT").message(),
              HasSubstr("must be NAME=VALUE"));
  EXPECT_FALSE(environment.SetOption("=1").ok());
}

TEST(ChildTest, LooksTakeATwentiethOfTheTimeAtMost) {
  EXPECT_EQ(PauseAfter(absl::Milliseconds(10), absl::ZeroDuration()),
            absl::Milliseconds(20));
  EXPECT_EQ(PauseAfter(absl::Seconds(1), absl::Milliseconds(50)),
            absl::Seconds(1));
  EXPECT_EQ(PauseAfter(absl::Seconds(1), absl::Seconds(4)), absl::Seconds(76));
  EXPECT_EQ(PauseAfter(absl::Seconds(76), absl::Milliseconds(1)),
            absl::Seconds(1));
}

TEST(RunReportsTest, OnlyFramesInFilesAreOthers) {
  constexpr std::string_view kReport =
      "hakmem: fatal: double free of 0x10\n"
      "  stack of this call:\n"
      "    #0 0x55 _Z1fv+0x8b (/no/such (dir)/a+0x18b) (BuildId: c3ba)\n"
      "    #1 0x56 (/no/b+0x2)\n"
      "    #2 0x7f\n"
      "  hint: look (at #1)\n";
  EXPECT_EQ(
      CompletedReports(kReport, {.program = "none", .symbols_folder = ""}),
      "hakmem: fatal: double free of 0x10\n"
      "  stack of this call:\n"
      "    #0 a+0x18b\n"
      "    #1 b+0x2\n"
      "    #2 0x7f\n"
      "  hint: look (at #1)\n");
}

TEST(LibraryTest, EachVariantHasItsLibrary) {
  EXPECT_EQ(LibraryName("release").value(), "libhakmem.so");
  EXPECT_EQ(LibraryName("debug").value(), "libhakmem-debug.so");
  EXPECT_THAT(LibraryName("fast").status().message(),
              HasSubstr("release, tracing, hardened, debug"));
}

class RunOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> folder = MakeTemporaryFolder("output");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  void Append(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::app) << text;
  }

  std::string folder_;
};

TEST_F(RunOutputTest, OnlyWhatIsNewIsRead) {
  Append("t", "old");
  const RunOutput output(Path("t"));
  EXPECT_TRUE(output.NewContent().empty());
  Append("t", "new");
  EXPECT_THAT(output.NewContent(), ElementsAre(Pair(Path("t"), "new")));
}

TEST_F(RunOutputTest, GlibcsNameIsTakenWhereItLeadsToTheLibrary) {
  Append("a.so", "");
  EXPECT_EQ(NameForGlibc(Path("a.so"), "/usr/lib"),
            absl::StrCat("/$LIB/../../../..", Path("a.so")));
  // From there four steps do not reach the root; another file may lie there.
  std::filesystem::create_directories(Path("b/c/d/e/f"));
  const std::string folder = Path("b/c/d/e/f");
  EXPECT_EQ(NameForGlibc(Path("a.so"), folder), Path("a.so"));
  const std::string other = absl::StrCat(Path("b"), Path("a.so"));
  std::filesystem::create_directories(
      std::filesystem::path(other).parent_path());
  std::ofstream(other) << "other";
  EXPECT_EQ(NameForGlibc(Path("a.so"), folder), Path("a.so"));
}

TEST_F(RunOutputTest, ANewFileIsWrittenThroughNoLink) {
  ASSERT_TRUE(WriteNewFile(Path("new"), "whole").ok());
  Append("victim", "kept");
  std::filesystem::create_symlink(Path("victim"), Path("link"));
  std::filesystem::create_symlink(Path("victim"), Path("other.part"));
  EXPECT_TRUE(WriteNewFile(Path("link"), "whole").ok());
  EXPECT_FALSE(std::filesystem::is_symlink(Path("link")));
  EXPECT_FALSE(WriteNewFile(Path("other"), "whole").ok());
  EXPECT_FALSE(std::filesystem::exists(Path("other")));
  EXPECT_EQ(std::filesystem::file_size(Path("victim")), 4u);
  EXPECT_EQ(std::filesystem::file_size(Path("new")), 5u);
}

TEST_F(RunOutputTest, ANumberStandsForTheProcess) {
  Append("t.1.x", "old");
  const RunOutput output(Path("t.%p.x"));
  Append("t.1.x", "new");
  Append("t.23.x", "b");
  Append("t.x", "no");
  Append("t.a.x", "no");
  Append("t.5.xy", "no");
  EXPECT_THAT(output.NewContent(), ElementsAre(Pair(Path("t.1.x"), "new"),
                                               Pair(Path("t.23.x"), "b")));
}

TEST(RunOutputWordsTest, WordsAreNoPaths) {
  for (const char* word : {"", "0", "1", "fd:3"}) EXPECT_FALSE(IsPath(word));
  EXPECT_TRUE(IsPath("fd"));
  EXPECT_TRUE(IsPath("/tmp/x"));
}

TEST(PeaksTest, TheGreatestIsFound) {
  Peaks peaks;
  AddPeaks(
      "{\"pid\":1,\"program\":\"a\",\"peak_mapped_bytes\":10,\"routes\":{}}\n"
      "{\"pid\":2,\"program\":\"b\",\"peak_mapped_bytes\":30,\"routes\":{}}\n"
      "{\"pid\":3,\"program\":\"c\",\"peak_mapped_bytes\":20,\"routes\":{}}\n"
      "{\"pid\":4,\"program\"",
      peaks);
  EXPECT_EQ(peaks.mapped, 30u);
  EXPECT_EQ(peaks.mapped_by, "b");
  AddPeaks(
      "{\"pid\":7,\"program\":\"d\",\"peak_mapped_bytes\":1,\"routes\":"
      "{\"tiny\":{\"allocations\":2,\"bytes\":9},"
      "\"pool\":{\"allocations\":3,\"bytes\":9}}}\n"
      "{\"pid\":8,\"program\":\"e\",\"peak_mapped_bytes\":1,\"routes\":"
      "{\"tiny\":4}}\n"
      // A second hakmem of the process, preloaded behind the first.
      "{\"pid\":7,\"program\":\"d\",\"peak_mapped_bytes\":0,\"routes\":"
      "{\"tiny\":{\"allocations\":0,\"bytes\":0}}}\n"
      // Behind what a process wrote that was killed meanwhile.
      "{\"pid\":4,\"prog{\"pid\":9,\"program\":\"f\","
      "\"peak_mapped_bytes\":0,\"routes\":{},"
      "\"failures\":1}\n",
      peaks);
  EXPECT_THAT(peaks.asked, ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0),
                                       Pair(7, 5), Pair(9, 1)));
}

std::string SummaryOf(const std::string& content,
                      const std::string& trace = "/tmp/a b") {
  Session session;
  session.Add(session.AddInput("t"), content);
  return RunSummary(session, {5 << 20, "server", {}}, trace);
}

class DoubtsTest : public RunOutputTest {
 protected:
  // What is said when the processes have written `content` to the trace.
  std::string Doubt(const std::string& content) const {
    Session session;
    const std::size_t input = session.AddInput(Path("t"));
    session.Add(input, content);
    session.Finish(input);
    return WhyFailuresMayBeMissing(session, Path("t"), Path("t"));
  }
};

TEST_F(DoubtsTest, NoneWhenTheTraceIsWhole) {
  EXPECT_EQ(Doubt(absl::StrCat(Line(StartJson()), Line(EndJson(0, 0)))), "");
  // Killed, or ended by _exit.
  EXPECT_EQ(Doubt(Line(StartJson())), "");
}

TEST_F(DoubtsTest, ATraceThatNobodyWroteIsNoGoodNews) {
  EXPECT_THAT(Doubt(""), HasSubstr("whether a call failed is not known"));
  EXPECT_THAT(Doubt("another program's\n"), HasSubstr("is not known"));
}

TEST_F(DoubtsTest, TheReasonIsNamed) {
  const Session session;
  EXPECT_THAT(WhyFailuresMayBeMissing(session, "/no/folder/t", "/no/folder/t"),
              HasSubstr("/no/folder/t (No such file or directory)"));
  EXPECT_THAT(WhyFailuresMayBeMissing(session, "fd:7", ""),
              HasSubstr("HAKMEM_ACE_TRACE=fd:7 is no file"));
}

TEST_F(DoubtsTest, WhatIsMissingIsCounted) {
  const std::string start = Line(StartJson());
  EXPECT_THAT(Doubt(absl::StrCat(start, Line(EndJson(9, 4)))),
              HasSubstr("4 failures were not written"));
  EXPECT_THAT(Doubt(absl::StrCat(start, Line(FailureJson()).substr(0, 80))),
              HasSubstr("1 line is damaged"));
}

TEST(RunSummaryTest, SilentWhenNothingFailed) {
  EXPECT_EQ(SummaryOf(absl::StrCat(Line(StartJson()), Line(EndJson(0, 0)))),
            "");
}

TEST(RunSummaryTest, SaysWhyAndHowToGoOn) {
  const std::string summary = SummaryOf(Line(FailureJson()));
  EXPECT_THAT(summary, HasSubstr("hakmem: 1 call failed in 1 process.\n"));
  EXPECT_THAT(summary, HasSubstr("* MapFail/rlimit_as, 1 call failed: The"));
  EXPECT_THAT(summary, HasSubstr("at most 915.5 MiB mapped"));
  EXPECT_THAT(summary, HasSubstr("hakmem explain '/tmp/a b'\n"));
}

TEST(RunSummaryTest, NamesTheFilesOfAllProcesses) {
  EXPECT_THAT(SummaryOf(Line(FailureJson()), "/tmp/a b.%p.jsonl"),
              HasSubstr("hakmem explain '/tmp/a b.'[0-9]*.jsonl\n"));
}

TEST(RunSummaryTest, AFewCausesAreEnough) {
  std::string content;
  for (int i = 0; i < 9; ++i) {
    content += Line(FailureJson({{"detail", absl::StrCat("d", i)}}));
  }
  EXPECT_THAT(SummaryOf(content), HasSubstr("and 4 other causes"));
}

}  // namespace
}  // namespace hakmem::tools
