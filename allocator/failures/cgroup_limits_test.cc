#include "allocator/failures/cgroup_limits.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "allocator/platform/fake_proc_tree.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr char kRootMount[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n";
constexpr char kSecondVersion[] =
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

class CgroupLimitsTest : public testing::Test {
 protected:
  void Mounts(const std::string& lines) {
    tree_.Write("/proc/self/mountinfo", kRootMount + lines);
  }
  void Groups(const std::string& lines) {
    tree_.Write("/proc/self/cgroup", lines);
  }
  void SecondVersion(const std::string& folder, const std::string& max,
                     const std::string& high, const std::string& current) {
    tree_.Write(folder + "/memory.max", max + "\n");
    tree_.Write(folder + "/memory.high", high + "\n");
    tree_.Write(folder + "/memory.current", current + "\n");
  }
  void FirstVersion(const std::string& folder, const std::string& limit,
                    const std::string& usage) {
    tree_.Write(folder + "/memory.limit_in_bytes", limit + "\n");
    tree_.Write(folder + "/memory.usage_in_bytes", usage + "\n");
  }

  // "name source value use" of each.
  std::vector<std::string> Readings() {
    LimitReport report;
    ReadCgroupLimits(tree_.files(), report);
    std::vector<std::string> all;
    for (unsigned i = 0; i < report.count; ++i) {
      const LimitReading& reading = report.readings[i];
      all.push_back(std::string(reading.name) + " " + reading.source + " " +
                    std::to_string(reading.value) + " " +
                    std::to_string(reading.use));
    }
    return all;
  }

  FakeProcTree tree_;
};

using Strings = std::vector<std::string>;

TEST_F(CgroupLimitsTest, WithoutAnyFileThereIsNothing) {
  EXPECT_EQ(Readings(), Strings());
  Mounts(kSecondVersion);
  EXPECT_EQ(Readings(), Strings());
  Groups("0::/\n");
  EXPECT_EQ(Readings(), Strings());
}

TEST_F(CgroupLimitsTest, WalksFromTheInnermostGroupOutwards) {
  Mounts(kSecondVersion);
  Groups("0::/a.slice/b.service\n");
  SecondVersion("/sys/fs/cgroup/a.slice/b.service", "1000", "900", "800");
  SecondVersion("/sys/fs/cgroup/a.slice", "5000", "max", "4000");
  EXPECT_EQ(Readings(),
            Strings({
                "memory.max /sys/fs/cgroup/a.slice/b.service/memory.max "
                "1000 800",
                "memory.high /sys/fs/cgroup/a.slice/b.service/memory.high "
                "900 800",
                "memory.max /sys/fs/cgroup/a.slice/memory.max 5000 4000",
            }));
}

TEST_F(CgroupLimitsTest, LimitsThatAreNotSetAreNone) {
  Mounts(kSecondVersion);
  Groups("0::/a\n");
  SecondVersion("/sys/fs/cgroup/a", "max", "max", "800");
  EXPECT_EQ(Readings(), Strings());
}

// Docker with a namespace of its own: the container's group looks like the
// root, and the root of the mount has limits.
TEST_F(CgroupLimitsTest, AContainersGroupIsTheRoot) {
  Mounts(kSecondVersion);
  Groups("0::/\n");
  SecondVersion("/sys/fs/cgroup", "2000", "max", "1500");
  EXPECT_EQ(Readings(),
            Strings({"memory.max /sys/fs/cgroup/memory.max 2000 1500"}));
}

// Docker without one: the path is the host's, the mount begins at the group.
TEST_F(CgroupLimitsTest, AMountMayBeginAtTheGroup) {
  Mounts(
      "35 31 0:32 /docker/4a1f /sys/fs/cgroup/memory ro,nosuid - "
      "cgroup cgroup rw,memory\n");
  Groups("5:cpu,cpuacct:/docker/4a1f\n4:memory:/docker/4a1f/inner\n");
  FirstVersion("/sys/fs/cgroup/memory/inner", "9223372036854771712", "700");
  FirstVersion("/sys/fs/cgroup/memory", "3000", "800");
  EXPECT_EQ(
      Readings(),
      Strings(
          {"memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 3000 800"}));
}

TEST_F(CgroupLimitsTest, TheGroupIsTheCallingThreads) {
  Mounts("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  Groups("4:memory:/\n");
  tree_.Write("/proc/thread-self/cgroup", "4:memory:/job\n");
  FirstVersion("/sys/fs/cgroup/memory/job", "3000", "800");
  EXPECT_EQ(
      Readings(),
      Strings({"memory.max /sys/fs/cgroup/memory/job/memory.limit_in_bytes "
               "3000 800"}));
}

// A limit that is read twice may be another one.
TEST_F(CgroupLimitsTest, ReadsALimitOnce) {
  Mounts(kSecondVersion);
  Groups("0::/job\n");
  SecondVersion("/sys/fs/cgroup/job", "1000", "max", "10");
  int error_number = 0;
  const int file =
      tree_.files().Open("/sys/fs/cgroup/job/memory.max", error_number);
  const int events = inotify_init1(IN_NONBLOCK);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  ASSERT_GE(inotify_add_watch(events, path.c_str(), IN_OPEN | IN_CLOSE), 0);
  EXPECT_EQ(Readings(),
            Strings({"memory.max /sys/fs/cgroup/job/memory.max 1000 10"}));
  inotify_event seen[8];
  EXPECT_EQ(read(events, seen, sizeof(seen)), 2 * sizeof(seen[0]));
  EXPECT_EQ(seen[0].mask, unsigned{IN_OPEN});
  close(events);
  close(file);
}

TEST_F(CgroupLimitsTest, OtherMountsAreOthers) {
  // The beginning of the name is the same, the group is not.
  Mounts("35 31 0:32 /docker/4a /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
  Groups("0::/docker/4a1f\n");
  SecondVersion("/sys/fs/cgroup", "1", "1", "1");
  SecondVersion("/sys/fs/cgroup1f", "1", "1", "1");
  EXPECT_EQ(Readings(), Strings());
  // And one that the process is outside of.
  Mounts(kSecondVersion);
  Groups("0::/../elsewhere\n");
  SecondVersion("/sys/fs/elsewhere", "1", "1", "1");
  EXPECT_EQ(Readings(), Strings());
}

// The kernel counts memory in the first version's hierarchy there: the second
// has no limits to look for.
TEST_F(CgroupLimitsTest, ReadsTheFirstVersionOfAHybridSystem) {
  Mounts(
      "33 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  Groups("9:name=systemd:/\n4:hugetlb,memory:/job\n1:cpu:/job\n0::/job\n");
  SecondVersion("/sys/fs/cgroup/unified/job", "11", "max", "10");
  FirstVersion("/sys/fs/cgroup/memory/job", "21", "20");
  tree_.Write("/sys/fs/cgroup/memory/job/memory.kmem.limit_in_bytes", "31\n");
  tree_.Write("/sys/fs/cgroup/memory/job/memory.kmem.usage_in_bytes", "30\n");
  EXPECT_EQ(
      Readings(),
      Strings({
          "memory.max /sys/fs/cgroup/memory/job/memory.limit_in_bytes 21 20",
          "memory.max /sys/fs/cgroup/memory/job/memory.kmem.limit_in_bytes "
          "31 30",
      }));
}

TEST_F(CgroupLimitsTest, MountPointsAreUnescaped) {
  Mounts("35 31 0:32 /a\\134x2db /mnt/c\\040d rw - cgroup2 cgroup rw\n");
  Groups("0::/a\\x2db/e\n");
  SecondVersion("/mnt/c d/e", "5", "max", "4");
  EXPECT_EQ(Readings(), Strings({"memory.max /mnt/c d/e/memory.max 5 4"}));
}

TEST_F(CgroupLimitsTest, DamagedLinesAreSkipped) {
  Mounts(
      "\n \n- \n35\n35 31 0:32 / /wrong rw cgroup2 cgroup2 rw\n"
      "35 31 0:32 / /wrong rw - \n\\\\\\\\ \\9 \\ \n" +
      std::string(kSecondVersion));
  Groups("\n:\n0\n0:\n1:memory\n0:memory\n0::/a\n");
  SecondVersion("/sys/fs/cgroup/a", "7", "not a number", "6");
  EXPECT_EQ(Readings(),
            Strings({"memory.max /sys/fs/cgroup/a/memory.max 7 6"}));
}

TEST_F(CgroupLimitsTest, PathsThatAreTooLongAreGivenUp) {
  Mounts(kSecondVersion);
  Groups("0::/" + std::string(ProcReader::kMaxPathBytes, 'p') + "\n");
  EXPECT_EQ(Readings(), Strings());
  // Here only the files' own names do not fit.
  const std::string group = "/" + std::string(200, 'q') + "/" +
                            std::string(200, 'r') + "/" + std::string(85, 's');
  Groups("0::" + group + "\n");
  SecondVersion("/sys/fs/cgroup/" + std::string(200, 'q'), "9", "max", "8");
  const Strings readings = Readings();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_TRUE(readings[0].ends_with("q/memory.max 9 8")) << readings[0];
}

TEST_F(CgroupLimitsTest, TheDepthIsBounded) {
  Mounts(kSecondVersion);
  std::string group;
  for (unsigned i = 0; i < kMaxGroups + 5; ++i) group += "/g";
  Groups("0::" + group + "\n");
  SecondVersion("/sys/fs/cgroup/g", "9", "max", "8");
  EXPECT_EQ(Readings(), Strings());
}

TEST_F(CgroupLimitsTest, MoreLimitsThanReadingsAreLeftOut) {
  Mounts(kSecondVersion);
  std::string group;
  for (unsigned i = 0; i < LimitReport::kMaxReadings; ++i) {
    group += "/g";
    SecondVersion("/sys/fs/cgroup" + group, std::to_string(i), "1", "0");
  }
  Groups("0::" + group + "\n");
  const Strings readings = Readings();
  ASSERT_EQ(readings.size(), LimitReport::kMaxReadings);
  EXPECT_TRUE(readings[0].ends_with("g/memory.max 15 0"));
}

TEST_F(CgroupLimitsTest, TheLeastIsWhatTheProcessMayHave) {
  EXPECT_EQ(LeastCgroupMemory(tree_.files()), kNoLimit);
  Mounts(kSecondVersion);
  Groups("0::/a.slice/b.service\n");
  SecondVersion("/sys/fs/cgroup/a.slice/b.service", "max", "9000", "800");
  SecondVersion("/sys/fs/cgroup/a.slice", "5000", "max", "4000");
  EXPECT_EQ(LeastCgroupMemory(tree_.files()), 5000U);
}

TEST_F(CgroupLimitsTest, TheKernelsOwnMemoryIsAnother) {
  Mounts("35 31 0:32 / /cg rw - cgroup cgroup rw,memory\n");
  Groups("4:memory:/a\n");
  FirstVersion("/cg/a", "5000", "4000");
  tree_.Write("/cg/a/memory.kmem.limit_in_bytes", "70\n");
  tree_.Write("/cg/a/memory.kmem.usage_in_bytes", "60\n");
  EXPECT_EQ(Readings().size(), 2U);
  EXPECT_EQ(LeastCgroupMemory(tree_.files()), 5000U);
}

}  // namespace
}  // namespace hakmem
