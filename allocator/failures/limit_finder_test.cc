// Every verdict, from files that the test has written. The kernel's own
// refusals: limit_finder_real_test.cc.
#include "allocator/failures/limit_finder.h"

#include <cerrno>
#include <cstdint>
#include <string>

#include "allocator/platform/fake_proc_tree.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGiB = 1024 * kMiB;

std::string Text(std::uint64_t value) {
  return value == kNoLimit ? "unlimited" : std::to_string(value);
}

std::string Row(std::string name, std::uint64_t soft, std::uint64_t hard) {
  name.resize(26, ' ');
  std::string first = Text(soft);
  first.resize(21, ' ');
  return name + first + Text(hard) + "   bytes     \n";
}

class LimitFinderTest : public testing::Test {
 protected:
  // A process of 100 MiB and 20 mappings, without any limit but the one on
  // mappings.
  LimitFinderTest() {
    Status(100 * kMiB, 80 * kMiB, 0, 0);
    Limits();
    Maps(20);
    tree_.Write("/proc/sys/vm/max_map_count", "65530\n");
    Overcommit(0, 0, 0);
  }

  void Status(std::uint64_t size, std::uint64_t data, std::uint64_t locked,
              std::uint64_t capabilities) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (int shift = 60; shift >= 0; shift -= 4) {
      hex += kDigits[capabilities >> shift & 15];
    }
    tree_.Write("/proc/self/status",
                "Name:\tVmSize: 1 kB\nVmPeak:\t  999999999 kB\nVmSize:\t  " +
                    Text(size / 1024) + " kB\nVmLck:\t" + Text(locked / 1024) +
                    " kB\nVmData:\t   " + Text(data / 1024) +
                    " kB\nCapPrm:\tffffffffffffffff\nCapEff:\t" + hex + "\n");
  }
  void Limits(std::uint64_t as = kNoLimit, std::uint64_t data = kNoLimit,
              std::uint64_t data_hard = kNoLimit,
              std::uint64_t memlock = kNoLimit) {
    tree_.Write(
        "/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           "
        "Units     \n" +
            Row("Max file size", 1, 1) + Row("Max data size", data, data_hard) +
            Row("Max stack size", 8 * kMiB, kNoLimit) +
            Row("Max locked memory", memlock, memlock) +
            Row("Max address space", as, kNoLimit));
  }
  void Maps(std::uint64_t lines, bool gate = true) {
    std::string text;
    for (std::uint64_t i = 0; i < lines; ++i) {
      text += "7f5c3d400000-7f5c3d421000 rw-p 00000000 00:00 0 \n";
    }
    if (gate) {
      text +=
          "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0             "
          "     [vsyscall]\n";
    }
    tree_.Write("/proc/self/maps", text);
  }
  void Overcommit(int mode, std::uint64_t limit, std::uint64_t committed) {
    tree_.Write("/proc/sys/vm/overcommit_memory", std::to_string(mode) + "\n");
    tree_.Write("/proc/meminfo",
                "MemTotal:        4194304 kB\nMemFree:  5 kB\n"
                "SwapTotal:       1048576 kB\n"
                "CommitLimit:    " +
                    Text(limit / 1024) +
                    " kB\nCommitted_AS:   " + Text(committed / 1024) + " kB\n");
  }
  // The slack that a machine of 4 GiB has.
  static constexpr std::uint64_t kCommitSlack = 16 * kMiB;

  void Cgroup(std::uint64_t max, std::uint64_t high, std::uint64_t current) {
    tree_.Write("/proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_.Write("/proc/self/cgroup", "0::/job\n");
    const std::string folder = "/sys/fs/cgroup/job";
    tree_.Write(folder + "/memory.max",
                max == kNoLimit ? "max\n" : Text(max) + "\n");
    tree_.Write(folder + "/memory.high",
                high == kNoLimit ? "max\n" : Text(high) + "\n");
    tree_.Write(folder + "/memory.current", Text(current) + "\n");
  }

  FailureDetail Find(std::uint64_t needed, int error_number = ENOMEM,
                     bool used_up = false) {
    const LimitSources sources = {
        tree_.files(), used_up ? +[] { return true; } : +[] { return false; }};
    errno = 1234;
    FindLimitFrom(sources, needed, error_number, report_);
    EXPECT_EQ(errno, 1234);
    EXPECT_LE(report_.count, LimitReport::kMaxReadings);
    EXPECT_LT(report_.explaining, static_cast<int>(report_.count));
    return report_.detail;
  }
  const LimitReading& Explaining() const {
    EXPECT_GE(report_.explaining, 0);
    return report_.readings[report_.explaining < 0 ? 0 : report_.explaining];
  }
  const LimitReading* Reading(const std::string& name) const {
    for (unsigned i = 0; i < report_.count; ++i) {
      if (name == report_.readings[i].name) return &report_.readings[i];
    }
    return nullptr;
  }

  FakeProcTree tree_;
  LimitReport report_;
};

TEST_F(LimitFinderTest, WithRoomEverywhereItIsUnknown) {
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  EXPECT_EQ(report_.explaining, -1);
  // The only limit that every process has.
  ASSERT_EQ(report_.count, 1u);
  EXPECT_STREQ(report_.readings[0].name, "vm.max_map_count");
  EXPECT_EQ(report_.readings[0].value, 65530u);
  EXPECT_EQ(report_.readings[0].use, 20u);
}

TEST_F(LimitFinderTest, WithoutAnyFileItIsUnknown) {
  const FakeProcTree empty;
  FindLimitFrom({empty.files(), +[] { return true; }}, kMiB, ENOMEM, report_);
  EXPECT_EQ(report_.detail, FailureDetail::kUnknown);
  EXPECT_EQ(report_.count, 0u);
}

TEST_F(LimitFinderTest, AReportIsUsedAgain) {
  Limits(101 * kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kRlimitAs);
  Limits();
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  EXPECT_EQ(report_.explaining, -1);
  EXPECT_EQ(report_.count, 1u);
}

// What mprotect makes writable was in the address space before.
TEST_F(LimitFinderTest, AProtectionAddsNoAddresses) {
  Limits(101 * kMiB, 81 * kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kRlimitAs);
  report_.adds_addresses = false;
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kRlimitData);
}

TEST_F(LimitFinderTest, AddressSpace) {
  Limits(102 * kMiB);
  EXPECT_EQ(Find(2 * kMiB + 4096), FailureDetail::kRlimitAs);
  EXPECT_STREQ(Explaining().name, "RLIMIT_AS");
  EXPECT_STREQ(Explaining().source, "/proc/self/limits");
  EXPECT_EQ(Explaining().value, 102 * kMiB);
  EXPECT_EQ(Explaining().use, 100 * kMiB);
  EXPECT_EQ(report_.needed, 2 * kMiB + 4096);
  // Exactly what fits does not explain it; nor does a move, which needs none.
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  EXPECT_NE(Reading("RLIMIT_AS"), nullptr);
  Limits(50 * kMiB);
  EXPECT_EQ(Find(0), FailureDetail::kUnknown);
  // Nor does it explain another error.
  EXPECT_EQ(Find(2 * kMiB, EINVAL), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, AddressSpaceOfARequestThatIsTooLargeToAdd) {
  Limits(kNoLimit - 1);
  EXPECT_EQ(Find(kNoLimit - 4095), FailureDetail::kRlimitAs);
}

TEST_F(LimitFinderTest, Data) {
  Limits(kNoLimit, 82 * kMiB);
  EXPECT_EQ(Find(2 * kMiB + 4096), FailureDetail::kRlimitData);
  EXPECT_STREQ(Explaining().name, "RLIMIT_DATA");
  EXPECT_EQ(Explaining().value, 82 * kMiB);
  EXPECT_EQ(Explaining().use, 80 * kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  EXPECT_EQ(Find(0), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, DataLimitThatTheKernelIsToldToIgnore) {
  Limits(kNoLimit, 82 * kMiB);
  const std::string file = "/sys/module/kernel/parameters/ignore_rlimit_data";
  tree_.Write(file, "N\n");
  EXPECT_EQ(Find(4 * kMiB), FailureDetail::kRlimitData);
  tree_.Write(file, "Y\n");
  EXPECT_EQ(Find(4 * kMiB), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, DataLimitOfZeroPassesUpToTheHardOne) {
  Limits(kNoLimit, 0, kNoLimit);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  Limits(kNoLimit, 0, 82 * kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  EXPECT_EQ(Find(2 * kMiB + 4096), FailureDetail::kRlimitData);
}

TEST_F(LimitFinderTest, Mappings) {
  tree_.Write("/proc/sys/vm/max_map_count", "1000\n");
  Maps(1001);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kMaxMapCount);
  EXPECT_STREQ(Explaining().name, "vm.max_map_count");
  EXPECT_STREQ(Explaining().source, "/proc/self/maps");
  EXPECT_EQ(Explaining().value, 1000u);
  EXPECT_EQ(Explaining().use, 1001u);
  EXPECT_EQ(report_.needed, 1u);
}

TEST_F(LimitFinderTest, MappingsWithoutALimit) {
  tree_.Write("/proc/sys/vm/max_map_count", "max\n");
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  for (unsigned i = 0; i < report_.count; ++i) {
    EXPECT_STRNE(report_.readings[i].name, "vm.max_map_count");
  }
}

TEST_F(LimitFinderTest, TheKernelsOwnPageIsNoMapping) {
  tree_.Write("/proc/sys/vm/max_map_count", "1000\n");
  Maps(1001, /*gate=*/false);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kMaxMapCount);
  EXPECT_EQ(Explaining().use, 1001u);
}

TEST_F(LimitFinderTest, MappingsNearTheLimitExplainAMove) {
  tree_.Write("/proc/sys/vm/max_map_count", "1000\n");
  Maps(995);
  EXPECT_EQ(Find(0), FailureDetail::kMaxMapCount);
  Maps(994);
  EXPECT_EQ(Find(0), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, MappingsNearTheLimitComeAfterWhatIsCertain) {
  tree_.Write("/proc/sys/vm/max_map_count", "1000\n");
  Maps(998);
  Limits(101 * kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kRlimitAs);
}

// What is beyond the bound is not read; the kernel is asked instead.
TEST_F(LimitFinderTest, MappingsBeyondWhatIsRead) {
  tree_.Write("/proc/sys/vm/max_map_count", "1048576\n");
  const std::uint64_t lines = kMaxMapsBytes / 48 + 1000;
  Maps(lines);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  const LimitReading* const reading = Reading("vm.max_map_count");
  ASSERT_NE(reading, nullptr);
  EXPECT_STREQ(reading->source, "/proc/self/maps, its first 8 MiB");
  EXPECT_LT(reading->use, lines);
  EXPECT_GT(reading->use, kMaxMapsBytes / 49 - 50);
  EXPECT_EQ(Find(2 * kMiB, ENOMEM, /*used_up=*/true),
            FailureDetail::kMaxMapCount);
  EXPECT_EQ(Explaining().use, 1048577u);
}

TEST_F(LimitFinderTest, TheKernelIsNotAskedWhenAllIsRead) {
  EXPECT_EQ(Find(2 * kMiB, ENOMEM, /*used_up=*/true), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, TheFirstThatTheKernelChecksIsNamed) {
  tree_.Write("/proc/sys/vm/max_map_count", "10\n");
  Limits(kMiB, kMiB);
  Overcommit(2, kGiB, 2 * kGiB);
  Cgroup(kMiB, kMiB, kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kMaxMapCount);
  EXPECT_EQ(report_.count, 6u);
  tree_.Write("/proc/sys/vm/max_map_count", "65530\n");
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kRlimitAs);
  Limits(kNoLimit, kMiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kRlimitData);
  Limits();
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kOvercommit);
  Overcommit(0, kGiB, 2 * kGiB);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kCgroup);
}

TEST_F(LimitFinderTest, Overcommit) {
  Overcommit(2, kGiB, kGiB - 10 * kMiB);
  EXPECT_EQ(Find(20 * kMiB), FailureDetail::kOvercommit);
  EXPECT_STREQ(Explaining().name, "vm.overcommit_memory");
  EXPECT_EQ(Explaining().value, kGiB);
  EXPECT_EQ(Explaining().use, kGiB - 10 * kMiB);
  // The kernel's own count may be off by a part of the memory.
  Overcommit(2, kGiB, kGiB - kCommitSlack - 20 * kMiB);
  EXPECT_EQ(Find(20 * kMiB), FailureDetail::kOvercommit);
  EXPECT_EQ(Find(20 * kMiB - 4096), FailureDetail::kUnknown);
  EXPECT_NE(Reading("vm.overcommit_memory"), nullptr);
  EXPECT_EQ(Find(0), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, OvercommitModesThatCountNothing) {
  for (const int mode : {0, 1}) {
    Overcommit(mode, kGiB, 2 * kGiB);
    EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
    EXPECT_EQ(Reading("vm.overcommit_memory"), nullptr);
  }
}

TEST_F(LimitFinderTest, ABlockLongerThanMemoryAndSwap) {
  EXPECT_EQ(Find(5 * kGiB), FailureDetail::kUnknown);
  EXPECT_EQ(Find(5 * kGiB + 4096), FailureDetail::kOvercommit);
  EXPECT_STREQ(Explaining().name, "vm.overcommit_memory");
  EXPECT_STREQ(Explaining().source, "/proc/meminfo, MemTotal and SwapTotal");
  EXPECT_EQ(Explaining().value, 5 * kGiB);
  EXPECT_EQ(Explaining().use, 0u);
  Overcommit(1, 0, 0);
  EXPECT_EQ(Find(5 * kGiB + 4096), FailureDetail::kUnknown);
}

TEST_F(LimitFinderTest, OvercommitLeavesReserves) {
  tree_.Write("/proc/sys/vm/admin_reserve_kbytes", "8192\n");
  tree_.Write("/proc/sys/vm/user_reserve_kbytes", "131072\n");
  Overcommit(2, kGiB, kMiB);
  Status(320 * kMiB, 80 * kMiB, 0, 0);
  Find(kMiB);
  ASSERT_NE(Reading("vm.overcommit_memory"), nullptr);
  EXPECT_EQ(Reading("vm.overcommit_memory")->value, kGiB - 18 * kMiB);
  // A large process leaves at most the reserve.
  Status(320 * kGiB, 80 * kMiB, 0, 0);
  Find(kMiB);
  EXPECT_EQ(Reading("vm.overcommit_memory")->value, kGiB - 136 * kMiB);
  // An administrator's (CAP_SYS_ADMIN) need not leave the other one.
  Status(320 * kMiB, 80 * kMiB, 0, 1 << 21);
  Find(kMiB);
  EXPECT_EQ(Reading("vm.overcommit_memory")->value, kGiB - 10 * kMiB);
  // Reserves may be larger than all there is.
  Overcommit(2, kMiB, kMiB);
  Status(320 * kGiB, 80 * kMiB, 0, 0);
  EXPECT_EQ(Find(kMiB), FailureDetail::kOvercommit);
  EXPECT_EQ(Explaining().value, 0u);
}

TEST_F(LimitFinderTest, AFullCgroup) {
  Cgroup(kGiB, kNoLimit, kGiB - 200 * 1024);
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kCgroup);
  EXPECT_STREQ(Explaining().name, "memory.max");
  EXPECT_STREQ(Explaining().source, "/sys/fs/cgroup/job/memory.max");
  EXPECT_EQ(Explaining().value, kGiB);
  EXPECT_EQ(Explaining().use, kGiB - 200 * 1024);
}

TEST_F(LimitFinderTest, ACgroupThatIsNotFullRefusesNothing) {
  // However little room there is: mmap takes none of it.
  Cgroup(kGiB, kNoLimit, kGiB - kMiB);
  EXPECT_EQ(Find(100 * kMiB), FailureDetail::kUnknown);
  ASSERT_NE(Reading("memory.max"), nullptr);
  EXPECT_EQ(Reading("memory.max")->use, kGiB - kMiB);
  // And this limit only slows down.
  Cgroup(kNoLimit, kMiB, kGiB);
  EXPECT_EQ(Find(100 * kMiB), FailureDetail::kUnknown);
  EXPECT_NE(Reading("memory.high"), nullptr);
}

TEST_F(LimitFinderTest, AddressesInUse) {
  Limits(kMiB);
  EXPECT_EQ(Find(2 * kMiB, EEXIST), FailureDetail::kAddressInUse);
  EXPECT_EQ(report_.explaining, -1);
}

TEST_F(LimitFinderTest, LockedMemory) {
  Limits(kNoLimit, kNoLimit, kNoLimit, 8 * kMiB);
  Status(100 * kMiB, 80 * kMiB, 7 * kMiB, 0);
  EXPECT_EQ(Find(2 * kMiB, EAGAIN), FailureDetail::kRlimitMemlock);
  EXPECT_STREQ(Explaining().name, "RLIMIT_MEMLOCK");
  EXPECT_EQ(Explaining().value, 8 * kMiB);
  EXPECT_EQ(Explaining().use, 7 * kMiB);
  EXPECT_EQ(Find(kMiB, EAGAIN), FailureDetail::kUnknown);
  // It says nothing about other errors, and does not count with CAP_IPC_LOCK.
  EXPECT_EQ(Find(2 * kMiB, ENOMEM), FailureDetail::kUnknown);
  EXPECT_EQ(Reading("RLIMIT_MEMLOCK"), nullptr);
  Status(100 * kMiB, 80 * kMiB, 7 * kMiB, 1 << 14);
  EXPECT_EQ(Find(2 * kMiB, EAGAIN), FailureDetail::kUnknown);
}

// Without their use, limits explain nothing.
TEST_F(LimitFinderTest, WithoutStatusThereAreNoLimitsOfTheProcess) {
  Limits(kMiB, kMiB);
  tree_.Write("/proc/self/status", "Name:\tzombie\n");
  EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown);
  EXPECT_EQ(report_.count, 1u);
}

TEST_F(LimitFinderTest, DamagedFilesExplainNothing) {
  for (const char* const text :
       {"", "\n\n", "VmSize:\nVmData: x\nCapEff: xyz\nMax address space\n",
        "Max data size -1 7\nMax address space 99999999999999999999999 1\n"
        "CommitLimit: \nCommitted_AS: kB\n",
        "VmSize: 18446744073709551615 kB\n", "\0\1\2\3\n"}) {
    for (const char* const file :
         {"/proc/self/status", "/proc/self/limits", "/proc/meminfo",
          "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count",
          "/proc/self/cgroup", "/proc/self/mountinfo"}) {
      tree_.Write(file, text);
    }
    EXPECT_EQ(Find(2 * kMiB), FailureDetail::kUnknown) << text;
    EXPECT_EQ(report_.count, 0u) << text;
  }
}

}  // namespace
}  // namespace hakmem
