#include "allocator/reports/misuse_policy.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>

#include "allocator/base/compiler.h"
#include "allocator/process/process.h"
#include "allocator/reports/fatal.h"
#include "allocator/reports/report_sources.h"
#include "allocator/reports/report_text.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// What the calling process writes to standard error meanwhile.
template <typename Function>
std::string Said(Function&& function) {
  testing::internal::CaptureStderr();
  function();
  return testing::internal::GetCapturedStderr();
}

BlockReport Block() {
  return {.pointer = reinterpret_cast<const void*>(0x10000000abc0),
          .variant = "release",
          .block_bytes = 64,
          .owner_heap = 3,
          .caller_heap = 1};
}

class MisusePolicyTest : public testing::Test {
 protected:
  void TearDown() override {
    SetOnMisuse(OnMisuse::kAbort);
    SetSurroundingsSource(nullptr);
    SetHistorySource(nullptr);
    SetReportStacks(true);
  }
};
using MisusePolicyDeathTest = MisusePolicyTest;

TEST_F(MisusePolicyTest, PowersOfTenAreReported) {
  EXPECT_FALSE(IsReported(0));
  EXPECT_TRUE(IsReported(1));
  EXPECT_FALSE(IsReported(2));
  EXPECT_TRUE(IsReported(10));
  EXPECT_FALSE(IsReported(20));
  EXPECT_FALSE(IsReported(99));
  EXPECT_TRUE(IsReported(1000));
}

TEST_F(MisusePolicyTest, PlacesAreCountedOneByOneWhileThereIsRoom) {
  const std::uint64_t before = MisuseCount();
  for (std::uint64_t place = 1; place <= 1000; ++place) {
    const std::uint64_t count = CountMisuse(place << 32);
    if (place < kMisusePlaces / 2) {
      EXPECT_EQ(count, 1U);
    }
  }
  EXPECT_EQ(CountMisuse(std::uint64_t{1} << 32), 2U);
  // The rest is one place.
  EXPECT_GT(CountMisuse(std::uint64_t{5000} << 32), 900U);
  EXPECT_EQ(MisuseCount(), before + 1002);
}

TEST_F(MisusePolicyDeathTest, TrapStopsWhereItIs) {
  EXPECT_EXIT(
      {
        SetOnMisuse(OnMisuse::kTrap);
        FatalNotABlock(Block());
      },
      testing::KilledBySignal(HAK_TRAP_SIGNAL),
      "^hakmem: fatal: invalid free of 0x10000000abc0 ");
}

TEST_F(MisusePolicyDeathTest, DamageIsFatalInEveryMode) {
  EXPECT_EXIT(
      {
        SetOnMisuse(OnMisuse::kLog);
        FatalDamagedHeader(Block(), 1, 2);
      },
      testing::KilledBySignal(SIGABRT), "^hakmem: fatal: damaged header of ");
}

// A report that ends the process waits for room, no other one.
TEST_F(MisusePolicyDeathTest, OnlyTheLastReportWaitsForRoom) {
  const auto end_by = [](void (*report)()) {
    SetLastCall([] { _exit(AwaitRoom(EAGAIN) ? 42 : 1); });
    report();
    _exit(AwaitRoom(EAGAIN) ? 2 : 43);
  };
  const auto ended = testing::ExitedWithCode(42);
  EXPECT_EXIT(end_by([] { FatalNotABlock(Block()); }), ended, "");
  EXPECT_EXIT(end_by([] { FatalReentry("release"); }), ended, "");
  EXPECT_EXIT(end_by([] {
                StartReport("first");
                StartReport("second");
              }),
              ended, "");
  SetOnMisuse(OnMisuse::kLog);
  EXPECT_EXIT(end_by([] { FatalDamagedHeader(Block(), 1, 2); }), ended, "");
  EXPECT_EXIT(end_by([] { FatalNotABlock(Block()); }),
              testing::ExitedWithCode(43), "");
}

// In processes of their own, because places are never forgotten.
TEST_F(MisusePolicyDeathTest, LogReturnsAndRepeatsAreLines) {
  const auto log = [] {
    SetOnMisuse(OnMisuse::kLog);
    for (int i = 0; i < 25; ++i) FatalForeignPointer(Block());
    WriteFd(StandardError(),
            MisuseCount() == 25 ? "went on\n" : "miscounted\n");
    _exit(0);
  };
  EXPECT_EXIT(
      log(), testing::ExitedWithCode(0),
      "^hakmem: misuse: invalid free of 0x10000000abc0 "
      "\\(not hakmem's memory\\)\n  in free[^\n]*\n(  [^\n]+\n)+"
      "hakmem: misuse: invalid free of 0x10000000abc0 "
      "\\(not hakmem's memory\\), the 10th from this place \\([a-z]+\\)\n"
      "went on\n$");
}

TEST_F(MisusePolicyDeathTest, AnotherSentenceIsAnotherPlace) {
  const auto log = [] {
    SetOnMisuse(OnMisuse::kLog);
    SetReportStacks(false);
    FatalForeignPointer(Block());
    FatalForeignPointer(Block());
    FatalNotABlock(Block());
    _exit(0);
  };
  EXPECT_EXIT(log(), testing::ExitedWithCode(0),
              "^hakmem: misuse: invalid free of 0x10000000abc0 "
              "\\(not hakmem's memory\\)\n  in free[^\n]*\n  hint: [^\n]*\n"
              "  hakmem 0.1.0 release \\([a-z]+\\)\n"
              "hakmem: misuse: invalid free of 0x10000000abc0 "
              "\\(inside hakmem's region, but not a block\\)\n  in free[^\n]*\n"
              "  hint: [^\n]*\n  hakmem [^\n]*\n$");
}

void FillSurroundings(std::uintptr_t address, Surroundings& around) {
  around.at.kind = AddressKind::kBlock;
  around.at.block = {.start = address,
                     .bytes = 64,
                     .owner_heap = 3,
                     .state = "free",
                     .requested_bytes = 50};
  around.before = around.at;
  around.before.block.start = address - 64;
  around.before.block.live = true;
  around.before.block.state = "live";
  around.after.kind = AddressKind::kSlabEnd;
}

// Without its thread's number, as under a filter with musl.
void FillUnknownThread(std::uintptr_t, BlockHistory& history) {
  history.allocation.known = true;
}

void FillHistory(std::uintptr_t, BlockHistory& history) {
  history.allocation.known = true;
  history.allocation.thread_id = 77;
  history.allocation.stack.count = 1;
  history.allocation.stack.addresses[0] = 0x5000;
  history.release.known = true;
  history.release.thread_id = 78;
}

TEST_F(MisusePolicyDeathTest, TellsWhatIsKnownOfTheBlock) {
  const auto die = [] {
    SetReportStacks(false);
    SetSurroundingsSource(&FillSurroundings);
    SetHistorySource(&FillHistory);
    FatalFreedBlock(Block(), "free");
  };
  EXPECT_EXIT(
      die(), testing::KilledBySignal(SIGABRT),
      "state free\\)\n  in free, thread [0-9]+, heap 1\n"
      "  block: 0x10000000abc0 \\(class 64, owner heap 3, asked for with 50 "
      "bytes, free\\)\n"
      "  before it: 0x10000000ab80 \\(class 64, owner heap 3, asked for with "
      "50 bytes, live\\)\n"
      "  after it: the unused end of a slab\n"
      "  allocated by thread 77\n  stack of that call:\n    #0 0x5000\n"
      "  freed by thread 78\n  hint: ");
}

TEST_F(MisusePolicyDeathTest, LeavesOutAThreadThatIsNotKnown) {
  const auto die = [] {
    SetReportStacks(false);
    SetSurroundingsSource(&FillSurroundings);
    SetHistorySource(&FillUnknownThread);
    FatalFreedBlock(Block(), "free");
  };
  EXPECT_EXIT(die(), testing::KilledBySignal(SIGABRT), "\n  allocated\n");
}

// A report in the middle of a report: each is written as far as it can be.
void Nested(std::uintptr_t, Surroundings&) {
  ReportText text;
  text.Add("nested\n");
}

TEST_F(MisusePolicyTest, AReportInsideAReportIsWrittenAtOnce) {
  const std::string said = Said([] {
    ReportText text;
    text.Add("outer\n");
    Surroundings around;
    Nested(0, around);
  });
  EXPECT_EQ(said, "nested\nouter\n");
}

}  // namespace
}  // namespace hakmem
