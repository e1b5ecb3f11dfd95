#include "tools/hakmem/cgroup_kills.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/report.h"
#include "tools/hakmem/run_summary.h"
#include "tools/hakmem/session.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CgroupKillsTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  // Version 2: the process is in /a/b, and /a may use 64 MiB.
  void LayOutVersion2() {
    Write("/proc/self/cgroup", "0::/a/b\n");
    Write("/proc/self/mountinfo",
          "24 1 0:22 / /proc rw - proc proc rw\n"
          "35 31 0:32 / /cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    Write("/cgroup/a/b/memory.max", "max\n");
    Write("/cgroup/a/memory.max", "67108864\n");
    Write("/cgroup/a/memory.peak", "60000000\n");
    SetEvents(0, 0);
  }
  void SetEvents(std::uint64_t hits, std::uint64_t kills) {
    Write("/cgroup/a/b/memory.events",
          "low 0\nhigh 0\nmax 0\noom 0\noom_kill " + std::to_string(kills) +
              "\noom_group_kill 0\n");
    Write("/cgroup/a/memory.events",
          "low 0\nhigh 0\nmax " + std::to_string(hits) + "\noom 0\noom_kill " +
              std::to_string(kills) + "\n");
  }

  void LayOutVersion1(const std::string& mount_root) {
    Write("/proc/self/cgroup", "5:pids:/x\n4:cpu,memory:/c/d\n0::/\n");
    Write("/proc/self/mountinfo",
          "35 31 0:32 " + mount_root +
              " /m rw,nosuid - cgroup cgroup rw,cpu,memory\n");
  }
  void WriteGroup(const std::string& folder, const std::string& limit, int hits,
                  int kills) {
    Write(folder + "/memory.limit_in_bytes", limit + "\n");
    Write(folder + "/memory.max_usage_in_bytes", "1000\n");
    Write(folder + "/memory.failcnt", std::to_string(hits) + "\n");
    Write(folder + "/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 0\noom_kill " + std::to_string(kills) +
              "\n");
  }

  std::vector<CgroupMemory> Read() const { return ReadCgroups(root_); }

  const std::string root_ =
      testing::TempDir() + "/" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CgroupKillsTest, FindsTheGroupWhoseLimitWasHit) {
  LayOutVersion2();
  const std::vector<CgroupMemory> before = Read();
  ASSERT_EQ(before.size(), 2U);
  EXPECT_FALSE(before[0].limit.has_value());
  EXPECT_FALSE(FindKiller(before, Read()).has_value());
  SetEvents(20, 1);
  const std::optional<CgroupMemory> killer = FindKiller(before, Read());
  ASSERT_TRUE(killer.has_value());
  EXPECT_EQ(killer->limit_file, "/cgroup/a/memory.max");
  EXPECT_EQ(killer->limit, std::uint64_t{64} << 20);
  EXPECT_EQ(killer->peak, 60000000U);
}

TEST_F(CgroupKillsTest, ALimitThatIsHitKillsNobodyByItself) {
  LayOutVersion2();
  const std::vector<CgroupMemory> before = Read();
  SetEvents(20, 0);
  EXPECT_FALSE(FindKiller(before, Read()).has_value());
}

// The machine as a whole ran out of memory: no group's limit is to blame.
TEST_F(CgroupKillsTest, AKillWithoutALimitIsNotTheGroups) {
  LayOutVersion2();
  const std::vector<CgroupMemory> before = Read();
  SetEvents(0, 1);
  EXPECT_FALSE(FindKiller(before, Read()).has_value());
}

TEST_F(CgroupKillsTest, Version1) {
  LayOutVersion1("/");
  WriteGroup("/m/c/d", "9223372036854771712", 0, 0);
  WriteGroup("/m/c", "33554432", 3, 0);
  const std::vector<CgroupMemory> before = Read();
  ASSERT_EQ(before.size(), 2U);
  EXPECT_FALSE(before[0].limit.has_value());
  // The kill counts where the process was, the hit where the limit is.
  WriteGroup("/m/c/d", "9223372036854771712", 0, 1);
  WriteGroup("/m/c", "33554432", 9, 0);
  const std::optional<CgroupMemory> killer = FindKiller(before, Read());
  ASSERT_TRUE(killer.has_value());
  EXPECT_EQ(killer->limit_file, "/m/c/memory.limit_in_bytes");
  EXPECT_EQ(killer->peak, 1000U);
}

TEST_F(CgroupKillsTest, ThePeakTellsWhereHitsAreNotCounted) {
  LayOutVersion1("/c/d");
  WriteGroup("/m", "33554432", 0, 0);
  const std::vector<CgroupMemory> before = Read();
  WriteGroup("/m", "33554432", 0, 1);
  Write("/m/memory.max_usage_in_bytes", "33550336\n");
  EXPECT_TRUE(FindKiller(before, Read()).has_value());
}

TEST_F(CgroupKillsTest, TheLimitOnMemoryAndSwapIsHit) {
  LayOutVersion1("/c/d");
  WriteGroup("/m", "33554432", 0, 0);
  Write("/m/memory.memsw.failcnt", "0\n");
  const std::vector<CgroupMemory> before = Read();
  WriteGroup("/m", "33554432", 0, 1);
  EXPECT_FALSE(FindKiller(before, Read()).has_value());
  Write("/m/memory.memsw.failcnt", "7\n");
  EXPECT_TRUE(FindKiller(before, Read()).has_value());
}

TEST_F(CgroupKillsTest, AContainerSeesItsOwnGroupAsTheRoot) {
  LayOutVersion1("/c/d");
  WriteGroup("/m", "33554432", 0, 0);
  const std::vector<CgroupMemory> groups = Read();
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].limit_file, "/m/memory.limit_in_bytes");
  LayOutVersion1("/c/dd");
  EXPECT_TRUE(Read().empty());
}

// What `hakmem run` writes is what `hakmem explain` reads.
TEST(KilledLine, IsExplained) {
  CgroupMemory killer;
  killer.limit_file = "/sys/fs/cgroup/job/memory.max";
  killer.limit = std::uint64_t{64} << 20;
  Session session;
  const std::size_t input = session.AddInput("trace");
  session.Add(input, KilledLine(killer, 77, "redis-server"));
  session.Finish(input);
  EXPECT_TRUE(session.Complete());
  const Analysis& analysis = session.analysis();
  EXPECT_EQ(analysis.killed(), 1U);
  EXPECT_EQ(analysis.failed(), 0U);
  const Symbolizer symbols({});
  const std::string text =
      ReportAsText({session.inputs(), analysis, symbols}, 3);
  EXPECT_THAT(text, HasSubstr("The kernel killed 1 process."));
  EXPECT_THAT(text, HasSubstr("redis-server (process 77)"));
  EXPECT_THAT(text, HasSubstr("64.0 MiB"));
  EXPECT_THAT(text, HasSubstr("MemoryMax=128M"));
  EXPECT_THAT(text, HasSubstr("HAKMEM_HEAP_LIMIT=48M"));
  EXPECT_THAT(text, HasSubstr("killed      by signal 9"));
  EXPECT_THAT(text, Not(HasSubstr("Where")));
  EXPECT_THAT(ReportAsHtml({session.inputs(), analysis, symbols}),
              HasSubstr("1 process was killed"));
  EXPECT_THAT(RunSummary(session, Peaks(), "/tmp/t"),
              HasSubstr("Killed/cgroup, 1 process was killed: The kernel"));
}

TEST_F(CgroupKillsTest, NoGroups) {
  EXPECT_TRUE(Read().empty());
  EXPECT_FALSE(FindKiller({}, {}).has_value());
}

}  // namespace
}  // namespace hakmem::tools
