#include "allocator/failures/failure_reporter.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "allocator/options/option_parser.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

int g_readings = 0;
std::uint64_t g_now_ns = 0;
std::uint64_t g_reading_ns = 0;  // what a reading takes
LimitReport g_limits;

void FindFake(std::size_t needed_bytes, int /*error_number*/,
              LimitReport& report) {
  ++g_readings;
  g_now_ns += g_reading_ns;
  report = g_limits;
  if (report.detail != FailureDetail::kMaxMapCount) {
    report.needed = needed_bytes;
  }
}

class FailureReporterTest : public testing::Test {
 protected:
  FailureReporterTest() {
    g_readings = 0;
    g_now_ns = kSecondNs;
    g_reading_ns = 0;
    g_limits = LimitReport();
    g_limits.Add("RLIMIT_DATA", "/proc/self/limits", 999, 1);
    g_limits.explaining =
        g_limits.Add("RLIMIT_AS", "/proc/self/limits", 1000, 900);
    g_limits.detail = FailureDetail::kRlimitAs;
    reporter_.Start(options_, "release");
  }

  static FailureEvent Refused(std::uint64_t at_ns, std::uint64_t bytes,
                              int error_number = ENOMEM) {
    FailureEvent event;
    event.monotonic_ns = at_ns;
    event.reason = FailureReason::kMapFail;
    event.detail = FailureDetail::kUnknown;
    event.refused_call = VmCall::kMap;
    event.refused_bytes = bytes;
    event.error_number = error_number;
    return event;
  }

  ParsedOptions options_;
  TraceLine line_;
  FailureReporter reporter_{line_, &FindFake, [] { return g_now_ns; }};
};

TEST_F(FailureReporterTest, WhatRefusedAMappingMayNotHaveRefusedAProtection) {
  FailureEvent mapping = Refused(kSecondNs, 200);
  EXPECT_NE(reporter_.FindLimitOf(mapping), 0u);
  FailureEvent protection = Refused(kSecondNs + 1, 200);
  protection.refused_call = VmCall::kProtect;
  EXPECT_NE(reporter_.FindLimitOf(protection), 0u);
  EXPECT_EQ(g_readings, 2);
}

TEST_F(FailureReporterTest, NamesTheLimitThatExplains) {
  FailureEvent event = Refused(kSecondNs, 200);
  EXPECT_NE(reporter_.FindLimitOf(event), 0u);
  EXPECT_EQ(event.detail, FailureDetail::kRlimitAs);
  EXPECT_STREQ(event.limit_name, "RLIMIT_AS");
  EXPECT_STREQ(event.limit_source, "/proc/self/limits");
  EXPECT_EQ(event.limit_value, 1000u);
  EXPECT_EQ(event.limit_use, 900u);
  EXPECT_EQ(event.limit_needed, 200u);
}

TEST_F(FailureReporterTest, SaysSoWhenNoLimitExplains) {
  g_limits.explaining = -1;
  g_limits.detail = FailureDetail::kUnknown;
  FailureEvent event = Refused(kSecondNs, 200);
  EXPECT_NE(reporter_.FindLimitOf(event), 0u);
  EXPECT_EQ(event.detail, FailureDetail::kUnknown);
  EXPECT_STREQ(event.limit_name, "");
  // Nor does it explain the next ones, however many: a storm is not read for.
  std::uint64_t readings = 1;
  for (std::uint64_t i = 1; i < 1000; ++i) {
    FailureEvent next = Refused(kSecondNs + i, 200);
    if (reporter_.FindLimitOf(next) != 0) ++readings;
    EXPECT_EQ(next.detail, FailureDetail::kUnknown);
  }
  EXPECT_EQ(readings, 1 + FailureReporter::kMaxSpareReadings);
}

TEST_F(FailureReporterTest, ReadsAtMostOnceInAnInterval) {
  FailureEvent event = Refused(kSecondNs, 200);
  reporter_.FindLimitOf(event);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    FailureEvent next = Refused(kSecondNs + i * 99'999, 150);
    EXPECT_EQ(reporter_.FindLimitOf(next), 0u);
    EXPECT_EQ(next.detail, FailureDetail::kRlimitAs);
    EXPECT_STREQ(next.limit_name, "RLIMIT_AS");
    EXPECT_EQ(next.limit_needed, 150u);
  }
  EXPECT_EQ(g_readings, 1);
  FailureEvent later =
      Refused(kSecondNs + FailureReporter::kLimitIntervalNs, 150);
  EXPECT_NE(reporter_.FindLimitOf(later), 0u);
  EXPECT_EQ(g_readings, 2);
}

// It may have other limits. The time is soon after the machine's start.
TEST_F(FailureReporterTest, TheChildOfAForkReadsItsOwn) {
  g_reading_ns = 3 * FailureReporter::kLimitIntervalNs;
  FailureEvent event = Refused(kSecondNs, 200);
  reporter_.FindLimitOf(event);
  reporter_.ChildAfterFork();
  g_limits.detail = FailureDetail::kRlimitData;
  FailureEvent childs = Refused(kSecondNs + 1, 200);
  EXPECT_NE(reporter_.FindLimitOf(childs), 0u);
  EXPECT_EQ(childs.detail, FailureDetail::kRlimitData);
}

// Each child would copy the page.
TEST_F(FailureReporterTest, WithoutAFailureAForksChildWritesToNothing) {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  ASSERT_LE(sizeof(FailureReporter), page_bytes);
  void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const reporter = new (page) FailureReporter(line_);
  reporter->Start(options_, "release");
  ASSERT_EQ(mprotect(page, page_bytes, PROT_READ), 0);
  reporter->ChildAfterFork();
  munmap(page, page_bytes);
}

// Of 65,000 mappings while other programs want the processors: each refused
// call would find the last reading too old.
TEST_F(FailureReporterTest, LongReadingsAreFewer) {
  g_reading_ns = 3 * FailureReporter::kLimitIntervalNs;
  std::uint64_t refused_ns = kSecondNs;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t begin_ns = g_now_ns;
    FailureEvent event = Refused(refused_ns, 200);
    reporter_.FindLimitOf(event);
    EXPECT_EQ(event.detail, FailureDetail::kRlimitAs);
    refused_ns += g_now_ns - begin_ns + 1;
  }
  EXPECT_EQ(g_readings, 1);
  FailureEvent later =
      Refused(kSecondNs + FailureReporter::kReadingShare * g_reading_ns, 200);
  EXPECT_NE(reporter_.FindLimitOf(later), 0u);
}

// A smaller request, or another error, has another reason, or the use has
// grown.
TEST_F(FailureReporterTest, UsesAReadingOnlyForWhatItExplains) {
  FailureEvent event = Refused(kSecondNs, 200);
  reporter_.FindLimitOf(event);
  for (unsigned i = 0; i < FailureReporter::kMaxSpareReadings; ++i) {
    FailureEvent again = Refused(kSecondNs + 1, 100);
    EXPECT_NE(reporter_.FindLimitOf(again), 0u);
    EXPECT_EQ(again.detail, FailureDetail::kRlimitAs);
  }
  FailureEvent small = Refused(kSecondNs + 1, 100);
  EXPECT_EQ(reporter_.FindLimitOf(small), 0u);
  EXPECT_EQ(small.detail, FailureDetail::kUnknown);
  EXPECT_STREQ(small.limit_name, "");
  FailureEvent other = Refused(kSecondNs + 2, 200, EAGAIN);
  reporter_.FindLimitOf(other);
  EXPECT_EQ(other.detail, FailureDetail::kUnknown);
  FailureEvent move = Refused(kSecondNs + 3, 200);
  move.refused_call = VmCall::kMove;
  reporter_.FindLimitOf(move);
  EXPECT_EQ(move.detail, FailureDetail::kUnknown);
}

// One mapping more is too many, however long it is.
TEST_F(FailureReporterTest, MappingsAreCountedNotMeasured) {
  g_limits.explaining =
      g_limits.Add("vm.max_map_count", "/proc/self/maps", 65530, 65530);
  g_limits.detail = FailureDetail::kMaxMapCount;
  g_limits.needed = 1;
  FailureEvent event = Refused(kSecondNs, 1 << 20);
  reporter_.FindLimitOf(event);
  EXPECT_EQ(event.limit_needed, 1u);
  FailureEvent next = Refused(kSecondNs + 1, 4096);
  reporter_.FindLimitOf(next);
  EXPECT_EQ(next.detail, FailureDetail::kMaxMapCount);
  EXPECT_EQ(next.limit_needed, 1u);
}

__attribute__((noinline)) void IdentifyHere(const FailureReporter& reporter,
                                            FailureEvent& event) {
  reporter.Identify(__builtin_frame_address(0), event);
  asm volatile("");
}

TEST_F(FailureReporterTest, SaysWhoAndWhen) {
  std::thread([this] {
    pthread_setname_np(pthread_self(), "a worker");
    FailureEvent event;
    errno = 77;
    IdentifyHere(reporter_, event);
    EXPECT_EQ(errno, 77);
    EXPECT_EQ(event.process_id, getpid());
    EXPECT_EQ(event.thread_id, gettid());
    EXPECT_NE(event.thread_id, event.process_id);
    EXPECT_STREQ(event.thread_name, "a worker");
    EXPECT_GT(event.time_ns, 1'700'000'000 * kSecondNs);
    EXPECT_EQ(event.monotonic_ns, kSecondNs);
    EXPECT_GE(event.frame_count, 1u);
  }).join();
}

TEST_F(FailureReporterTest, FramesAreThoseOfTheCallers) {
  for (const char* unwinding : {"tables", "frames", "none"}) {
    ASSERT_EQ(ApplyOption("HAKMEM_UNWIND", unwinding, options_),
              OptionError::kNone);
    reporter_.Start(options_, "release");
    FailureEvent event;
    IdentifyHere(reporter_, event);
    if (std::string(unwinding) == "none") {
      EXPECT_EQ(event.frame_count, 0u);
      continue;
    }
    // IdentifyHere returns into this function.
    ASSERT_GE(event.frame_count, 1u);
    const void* const here = __builtin_return_address(0);
    bool found = false;
    for (unsigned i = 0; i < event.frame_count; ++i) {
      found =
          found || event.frames[i] == reinterpret_cast<std::uintptr_t>(here);
    }
    EXPECT_TRUE(found) << unwinding;
  }
}

TEST_F(FailureReporterTest, PublishesAllLimitsOfItsOwnReading) {
  const std::string path =
      std::filesystem::path(testing::TempDir()) / "reporter_trace";
  std::filesystem::remove(path);
  ASSERT_EQ(ApplyOption("HAKMEM_ACE_TRACE", path, options_),
            OptionError::kNone);
  reporter_.Start(options_, "release");
  FailureEvent first = Refused(kSecondNs, 200);
  const std::uint64_t reading = reporter_.FindLimitOf(first);
  reporter_.Publish(first, reading);
  FailureEvent second = Refused(kSecondNs + 1, 200);
  reporter_.Publish(second, reporter_.FindLimitOf(second));
  FailureEvent third = Refused(3 * kSecondNs, 200);
  const std::uint64_t newer = reporter_.FindLimitOf(third);
  reporter_.Publish(first, reading);
  reporter_.Publish(third, newer);
  std::ifstream file(path);
  std::vector<bool> with_limits;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"event\":\"failure\"") == std::string::npos) continue;
    with_limits.push_back(line.find("\"limits\":[{\"name\":\"RLIMIT_DATA\"") !=
                          std::string::npos);
  }
  EXPECT_EQ(with_limits, (std::vector<bool>{true, false, false, true}));
}

}  // namespace
}  // namespace hakmem
