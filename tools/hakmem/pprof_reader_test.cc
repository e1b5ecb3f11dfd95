// Heap profiles of pprof's form, as hakmem and others write them.

#include "tools/hakmem/pprof_reader.h"

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/pprof_profile.h"

namespace hakmem::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kMean = 524288;

std::string Zipped(std::string bytes) {
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// As Go's runtime writes them.
std::string GoProfile(const std::string& type = "inuse",
                      std::int64_t bytes = 100 * kMean) {
  PprofProfile profile;
  profile.AddSampleType(type + "_objects", "count");
  profile.AddSampleType(type + "_space", "bytes");
  profile.SetPeriod("space", "bytes", kMean);
  profile.SetTime(7, 0);
  const std::uint64_t mapping = profile.AddMapping({.begin = 0x400000,
                                                    .end = 0x500000,
                                                    .file_offset = 0,
                                                    .path = "/srv/go-server",
                                                    .build_id = ""});
  profile.AddSample(
      {profile.Location(mapping, 0x400123,
                        {{"inlined", "a.go:3"}, {"main.grow", "a.go:9"}}),
       profile.LocationNamed("runtime.main")},
      {100, static_cast<std::uint64_t>(bytes)});
  return profile.Finish();
}

absl::StatusOr<HeapProfiles> Read(const std::string& bytes,
                                  HeapModules& modules) {
  EXPECT_TRUE(IsPprof(bytes));
  return ReadPprof(bytes, modules);
}

TEST(PprofReaderTest, NamesAndSumsAreAsWritten) {
  for (const std::string& bytes : {GoProfile(), Zipped(GoProfile())}) {
    HeapModules modules;
    const absl::StatusOr<HeapProfiles> read = Read(bytes, modules);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_THAT(read->last, SizeIs(1));
    const HeapProfile& profile = read->last[0];
    EXPECT_EQ(profile.program, "go-server");
    EXPECT_EQ(profile.time_ns, 7u);
    EXPECT_EQ(profile.mean_bytes, kMean);
    EXPECT_EQ(profile.totals.live.bytes, 100ULL * kMean);
    EXPECT_EQ(profile.totals.live.blocks, 100u);
    // Two thirds of such blocks are sampled, each alone.
    EXPECT_EQ(profile.totals.live.samples, 63u);
    EXPECT_EQ(profile.totals.peak.bytes, profile.totals.live.bytes);
    HeapSymbols symbols(modules, {.program = "none", .symbols_folder = ""});
    symbols.Resolve(*read);
    std::vector<std::string> texts;
    for (const NamedCall& call : symbols.Calls(profile.sites[0].stack)) {
      texts.push_back(call.text);
    }
    EXPECT_THAT(texts, ElementsAre("inlined at a.go:3", "main.grow at a.go:9",
                                   "runtime.main"));
  }
}

// Two processes of one program, as files and as pprof has them.
constexpr char kLines[] =
    R"({"schema":"hakmem-heap-profile","version":1,"kind":"start","pid":7,)"
    R"("program":"server","hakmem":"0.1.0","variant":"release",)"
    R"("mean_bytes":524288})"
    "\n"
    R"({"kind":"module","path":"/srv/server","build_id":"ab12",)"
    R"("base":"0x10000","begin":"0x11000","end":"0x20000","offset":4096})"
    "\n"
    R"({"kind":"site","live":{"samples":1,"blocks":2,"bytes":4096},)"
    R"("peak":{"samples":1,"blocks":2,"bytes":8192},)"
    R"("allocated":{"samples":1,"blocks":4,"bytes":16384},)"
    R"("stack":["0x11200","0x12400","0x99"]})"
    "\n"
    R"({"kind":"end","sites":1,"lost_samples":0,)"
    R"("live":{"samples":1,"blocks":2,"bytes":4096},)"
    R"("peak":{"samples":1,"blocks":2,"bytes":8192},)"
    R"("allocated":{"samples":1,"blocks":4,"bytes":16384}})"
    "\n";

TEST(PprofReaderTest, WhatHakmemWroteIsComparedWithWhatItReads) {
  HeapModules modules;
  const absl::StatusOr<HeapProfiles> lines = ReadHeapProfiles(kLines, modules);
  ASSERT_TRUE(lines.ok()) << lines.status();
  HeapSymbols symbols(modules, {.program = "none", .symbols_folder = ""});
  const absl::StatusOr<HeapProfiles> read =
      Read(HeapAsPprof({{}, *lines, symbols, HeapKind::kLive}), modules);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->last[0].pid, 7u);
  EXPECT_EQ(read->last[0].program, "server");
  EXPECT_THAT(read->last[0].sites[0].addresses,
              ElementsAre(0x11200u, 0x12400u, 0x99u));
  for (const HeapKind kind :
       {HeapKind::kLive, HeapKind::kPeak, HeapKind::kAllocated}) {
    const HeapDiff diff = {"a", *lines, "b", *read, symbols, kind};
    EXPECT_THAT(GrowthBySite(diff), IsEmpty());
    EXPECT_EQ(TotalGrowth(diff).before.bytes, TotalGrowth(diff).after.bytes);
    EXPECT_THAT(HeapDiffRemarks(diff), IsEmpty());
  }
}

TEST(PprofReaderTest, WhatIsNoneIsSaid) {
  HeapModules modules;
  EXPECT_THAT(Read(GoProfile("cpu"), modules).status().message(),
              HasSubstr("not of a heap"));
  // What a server makes of two of its profiles.
  EXPECT_THAT(Read(GoProfile("inuse", -4096), modules).status().message(),
              HasSubstr("difference of two profiles"));
  EXPECT_FALSE(IsPprof(""));
  EXPECT_FALSE(IsPprof("\n\n{\"schema\":1}"));
  EXPECT_FALSE(IsPprof(kLines));
}

TEST(PprofReaderTest, DamageIsReadAsFarAsItGoes) {
  HeapModules modules;
  for (const std::string& whole : {GoProfile(), Zipped(GoProfile())}) {
    for (std::size_t size = 3; size < whole.size(); ++size) {
      std::string bytes = whole.substr(0, size);
      (void)ReadPprof(bytes, modules);
      bytes = whole;
      bytes[size] = static_cast<char>(~bytes[size]);
      (void)ReadPprof(bytes, modules);
    }
    EXPECT_FALSE(ReadPprof(whole.substr(0, whole.size() - 9), modules).ok());
  }
}

}  // namespace
}  // namespace hakmem::tools
