#include "allocator/guards/guarded_blocks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "allocator/base/bits.h"
#include "allocator/base/sanitizer.h"
#include "allocator/config/heap_options.h"
#include "allocator/lookup/lookup.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/test_waits.h"
#include "allocator/reports/bounds_reports.h"
#include "allocator/reports/fatal.h"
#include "allocator/reports/misuse_policy.h"

namespace hakmem {
namespace {

Address AddressOf(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

Region::Window WindowOf(const FakeVirtualMemory& memory) {
  return {RoundUp<Address>(memory.RegionRange().begin, kSuperSlabBytes), kGiB};
}

HeapOptions Slots(std::uint64_t slots) {
  HeapOptions options;
  options.guard_sample = 1;
  options.guard_slots = slots;
  return options;
}

class GuardedBlocksTest : public testing::Test {
 protected:
  void Start(std::uint64_t slots) {
    guards.Start(Slots(slots), WindowOf(memory));
  }
  char* Allocate(std::size_t size, std::size_t alignment = 16,
                 std::uint32_t random = 0) {
    return static_cast<char*>(guards.Allocate(size, alignment, random));
  }
  void Free(void* pointer) {
    guards.Free(Call(pointer), __builtin_frame_address(0));
  }
  static BlockReport Call(void* pointer, PointerUse use = PointerUse::kFree) {
    return {.pointer = pointer, .use = use, .variant = "test"};
  }
  // The first line that a fault at the address makes guards print; empty: none.
  std::string SentenceOf(Address address) {
    Fault fault;
    fault.signal = SIGSEGV;
    fault.has_address = true;
    fault.address = address;
    testing::internal::CaptureStderr();
    verdict = guards.ReportFault(fault, "test");
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(verdict == FaultVerdict::kUnknown, text.empty());
    return text.substr(0, text.find('\n'));
  }
  bool IsLive(const void* pointer) {
    LiveBlock block;
    return guards.FindLive(pointer, block);
  }

  // The slot of a block whose free met a refusal has clear blocks afterwards.
  void ExpectZeroAfterRefused(VmCall kind) {
    Start(1);
    char* block = Allocate(5000);
    std::memset(block, 1, 5000);
    memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kOnce, kind);
    Free(block);
    for (const std::uint32_t random : {1U, 0U, 0U}) {
      block = Allocate(5000, 16, random);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(std::all_of(block, block + 5000,
                              [](char byte) { return byte == 0; }));
      Free(block);
    }
    guards.CheckInvariants();
  }

  FakeVirtualMemory memory;
  GuardedBlocks guards{memory};
  const std::size_t page = memory.PageBytes();
  FaultVerdict verdict = FaultVerdict::kUnknown;
};

std::string Hex(Address address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%zx", static_cast<std::size_t>(address));
  return text;
}

constexpr std::uint32_t kRight = 0;
constexpr std::uint32_t kLeft = 1;

TEST_F(GuardedBlocksTest, ABlockEndsOrBeginsAtAnInaccessiblePage) {
  Start(200);
  for (const std::size_t size :
       {1UL, 15UL, 16UL, 100UL, 4080UL, 4096UL, 4097UL, 65536UL}) {
    for (const std::size_t alignment : {1UL, 16UL, 64UL, 4096UL}) {
      for (const std::uint32_t side : {kRight, kLeft}) {
        char* const block = Allocate(size, alignment, side);
        ASSERT_NE(block, nullptr);
        const Address start = AddressOf(block);
        EXPECT_TRUE(IsAligned(start, std::max<Address>(alignment, 16)));
        EXPECT_TRUE(std::all_of(block, block + size,
                                [](char byte) { return byte == 0; }));
        std::memset(block, 0x5a, size);
        const Address first = RoundDown<Address>(start, page);
        const Address end = RoundUp<Address>(start + size, page);
        EXPECT_TRUE(memory.IsProtected(first - page, page));
        EXPECT_TRUE(memory.IsProtected(end, page));
        if (side == kLeft) {
          EXPECT_EQ(start, first);
        } else {
          EXPECT_LT(end - (start + size), std::max<Address>(alignment, 16));
        }
        LiveBlock found;
        EXPECT_TRUE(guards.FindLive(block, found));
        EXPECT_EQ(found.size_bytes, size);
        EXPECT_FALSE(IsLive(block + 1));
        guards.CheckInvariants();
      }
    }
  }
}

TEST_F(GuardedBlocksTest, ABlockOfNothingHasNoByteToTouch) {
  Start(2);
  char* const block = Allocate(0, 16, kLeft);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(memory.IsProtected(AddressOf(block), page));
  EXPECT_TRUE(IsLive(block));
  char* const other = Allocate(0);
  EXPECT_NE(block, other);
  Free(block);
  EXPECT_FALSE(IsLive(block));
  EXPECT_TRUE(IsLive(other));
  EXPECT_EQ(SentenceOf(AddressOf(other)),
            "hakmem: fatal: overflow of " + Hex(AddressOf(other)) +
                " (1 byte past the end of a guarded block of 0 bytes)");
}

TEST_F(GuardedBlocksTest, AFreedBlockIsInaccessibleAndHoldsNoMemory) {
  Start(4);
  for (const std::size_t size : {100UL, 20'000UL}) {
    for (const std::uint32_t side : {kRight, kLeft}) {
      char* const block = Allocate(size, 16, side);
      std::memset(block, 1, size);
      Free(block);
      const Address first = RoundDown<Address>(AddressOf(block), page);
      const std::size_t bytes = RoundUp(size, page);
      EXPECT_TRUE(memory.IsProtected(first, bytes));
      EXPECT_TRUE(memory.IsPurged(first, bytes));
      EXPECT_FALSE(IsLive(block));
      guards.CheckInvariants();
    }
  }
}

TEST_F(GuardedBlocksTest, SlotsRestAsLongAsTheyCan) {
  Start(4);
  char* first = Allocate(16);
  Free(first);
  // What was never used comes first.
  std::vector<char*> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(Allocate(16));
    EXPECT_NE(blocks.back(), first);
  }
  EXPECT_EQ(Allocate(16), first);
  EXPECT_EQ(Allocate(16), nullptr);
  // Then what was freed longest ago.
  for (const int i : {1, 2, 0}) Free(blocks[static_cast<std::size_t>(i)]);
  guards.CheckInvariants();
  for (const int i : {1, 2, 0}) {
    EXPECT_EQ(Allocate(16), blocks[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(guards.live_blocks(), 4u);
}

TEST_F(GuardedBlocksTest, WhatDoesNotFitIsLeftToOthers) {
  Start(1);
  EXPECT_EQ(Allocate(GuardedBlocks::kMaxBytes + 1), nullptr);
  EXPECT_EQ(Allocate(16, 2 * page), nullptr);
  EXPECT_NE(Allocate(GuardedBlocks::kMaxBytes), nullptr);
}

TEST_F(GuardedBlocksTest, APauseEndsWithTheOutermost) {
  Start(10);
  {
    const GuardedBlocks::Pause outer;
    {
      const GuardedBlocks::Pause inner;
    }
    EXPECT_EQ(Allocate(1), nullptr);
  }
  EXPECT_NE(Allocate(1), nullptr);
}

TEST_F(GuardedBlocksTest, ASmallWindowHoldsFewer) {
  const Address begin =
      RoundUp<Address>(memory.RegionRange().begin, kSuperSlabBytes);
  guards.Start(Slots(8192), {begin, 16 * kMiB});
  std::size_t blocks = 0;
  while (Allocate(1) != nullptr) ++blocks;
  EXPECT_GT(blocks, 50u);
  EXPECT_LE(memory.mapped_bytes(), 16 * kMiB);
}

TEST_F(GuardedBlocksTest, WithoutMemoryThereAreNoneUntilTheNextTry) {
  for (const std::uint64_t nth : {1, 2}) {
    FakeVirtualMemory own;
    GuardedBlocks refused(own);
    refused.Start(Slots(16), WindowOf(own));
    own.RefuseCall(nth, ENOMEM);
    EXPECT_EQ(refused.Allocate(16, 16, kRight), nullptr);
    own.RefuseNothing();
    EXPECT_FALSE(refused.on());
    EXPECT_EQ(own.mapped_bytes(), 0u);
    EXPECT_FALSE(refused.Contains(&nth));
    void* const block = refused.Allocate(16, 16, kRight);
    EXPECT_TRUE(refused.Contains(block));
  }
}

// A process whose address space is full may have many samples.
TEST_F(GuardedBlocksTest, ATryThatIsRefusedIsOneCallOfTheKernel) {
  Start(200);
  memory.LimitBytes(memory.mapped_bytes() + kMiB);
  const std::uint64_t before = memory.calls(VmCall::kNone);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Allocate(16), nullptr);
  EXPECT_EQ(memory.calls(VmCall::kNone), before + 10);
}

TEST_F(GuardedBlocksTest, TheFirstBlockMapsThePool) {
  Start(16);
  EXPECT_EQ(memory.mapped_bytes(), 0u);
  EXPECT_FALSE(guards.on());
  EXPECT_EQ(Allocate(GuardedBlocks::kMaxBytes + 1), nullptr);
  EXPECT_FALSE(guards.on());
  EXPECT_NE(Allocate(16), nullptr);
  EXPECT_TRUE(guards.on());
}

// Another thread is about to unmap what it has mapped, as the kernel refused
// the rest. Its fork's child would not know that nobody goes on with it.
TEST_F(GuardedBlocksTest, AForkWaitsUntilThePoolIsMappedOrNot)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Start(16);
  std::atomic<bool> maps = false;
  std::atomic<bool> is_forked = false;
  memory.RefuseCall(2, ENOMEM);
  memory.WatchLongCalls([&](VmCall, Address, std::size_t) {
    maps = true;
    AwaitThat([&] { return is_forked || guards.lock().IsWaitedFor(); });
  });
  TestThread other([&] { EXPECT_EQ(Allocate(16), nullptr); });
  AwaitThat([&] { return maps.load(); });
  guards.lock().LockForFork();
  const pid_t child = fork();
  if (child == 0) {
    guards.lock().ResetAfterFork();
    EXPECT_NE(Allocate(16), nullptr);
    // Not _exit: where the other thread has ended by now, ThreadSanitizer's
    // complains that it was not joined.
    syscall(SYS_exit_group, testing::Test::HasFailure() ? 1 : 0);
  }
  is_forked = true;
  guards.lock().UnlockAfterFork();
  other.Join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(GuardedBlocksTest, ARefusedProtectionLosesNoSlot) {
  Start(2);
  char* const block = Allocate(100);
  Free(block);
  memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                    VmCall::kProtect);
  EXPECT_EQ(Allocate(100), nullptr);
  EXPECT_EQ(Allocate(100), nullptr);
  memory.RefuseNothing();
  EXPECT_NE(Allocate(100), nullptr);
  EXPECT_NE(Allocate(100), nullptr);
  EXPECT_EQ(Allocate(100), nullptr);
  guards.CheckInvariants();
}

TEST_F(GuardedBlocksTest, BlocksAreZeroThoughTheKernelRefusesToProtectThem) {
  ExpectZeroAfterRefused(VmCall::kProtect);
}

TEST_F(GuardedBlocksTest, BlocksAreZeroThoughTheKernelRefusesToTakePagesBack) {
  ExpectZeroAfterRefused(VmCall::kPurge);
}

TEST_F(GuardedBlocksTest, AFaultIsExplainedByTheNearestBlock) {
  Start(3);
  const Address left = AddressOf(Allocate(100, 16, kLeft));
  const Address right = AddressOf(Allocate(100, 16, kRight));
  const Address freed = AddressOf(Allocate(100, 16, kRight));
  Free(reinterpret_cast<void*>(freed));
  const std::string fatal = "hakmem: fatal: ";
  const std::string block = " a guarded block of 100 bytes";
  EXPECT_EQ(SentenceOf(left - 1), fatal + "underflow of " + Hex(left - 1) +
                                      " (1 byte before the start of" + block +
                                      ")");
  EXPECT_EQ(SentenceOf(left + page), fatal + "overflow of " + Hex(left + page) +
                                         " (" + std::to_string(page - 99) +
                                         " bytes past the end of" + block +
                                         ")");
  const Address end = RoundUp<Address>(right, page);
  EXPECT_EQ(SentenceOf(end), fatal + "overflow of " + Hex(end) +
                                 " (13 bytes past the end of" + block + ")");
  EXPECT_EQ(SentenceOf(freed + 16), fatal + "use after free of " +
                                        Hex(freed + 16) + " (16 bytes into" +
                                        block + ", freed)");
  EXPECT_EQ(SentenceOf(freed - 2),
            fatal + "use after free of " + Hex(freed - 2) +
                " (2 bytes before the start of" + block + ", freed)");
  // A live block's own bytes do not fault by hakmem's doing.
  EXPECT_EQ(SentenceOf(right), "");
  EXPECT_EQ(SentenceOf(AddressOf(&guards)), "");
}

TEST_F(GuardedBlocksTest, AWildAccessIsToNone) {
  Start(3);
  const Address only = AddressOf(Allocate(16, 16, kLeft));
  const Address wild = only + 3 * GuardedBlocks::kMaxBytes;
  EXPECT_EQ(SentenceOf(wild), "hakmem: fatal: wild access to " + Hex(wild) +
                                  " (among the guarded blocks, but to none)");
}

TEST_F(GuardedBlocksTest, AShrunkBlockIsGuardedAtItsNewEnd) {
  Start(1);
  char* const block = Allocate(5000, 16, kLeft);
  guards.Shrink(block, 20);
  LiveBlock found;
  EXPECT_TRUE(guards.FindLive(block, found));
  EXPECT_EQ(found.size_bytes, 20u);
  guards.CheckInvariants();
  Free(block);
  EXPECT_TRUE(memory.IsProtected(AddressOf(block), RoundUp(5000UL, page)));
}

class GuardedBlocksLogTest : public GuardedBlocksTest {
 protected:
  GuardedBlocksLogTest() { SetOnMisuse(OnMisuse::kLog); }
  ~GuardedBlocksLogTest() override { SetOnMisuse(OnMisuse::kAbort); }
};

TEST_F(GuardedBlocksLogTest, AMisusedCallChangesNothing) {
  Start(2);
  char* const block = Allocate(100, 16, kLeft);
  const std::uint64_t before = MisuseCount();
  testing::internal::CaptureStderr();
  Free(block + 16);
  guards.Report(FatalWrongSize, Call(block), 90);
  EXPECT_TRUE(IsLive(block));
  block[100] = static_cast<char>(block[100] + 1);
  EXPECT_FALSE(guards.IsIntact(block));
  Free(block);
  EXPECT_TRUE(IsLive(block));
  guards.CheckInvariants();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("hakmem: misuse: overflow of"), std::string::npos);
  EXPECT_EQ(text.find("fatal"), std::string::npos);
  EXPECT_EQ(MisuseCount(), before + 3);
}

// What a stale pointer still writes to is nobody else's.
TEST_F(GuardedBlocksLogTest, WhereAnAccessWentOnIsNotUsedAgain) {
  Start(3);
  char* const freed = Allocate(100, 16, kLeft);
  Free(freed);
  const Address place = AddressOf(freed) + 16;
  EXPECT_EQ(SentenceOf(place), "hakmem: misuse: use after free of " +
                                   Hex(place) +
                                   " (16 bytes into a guarded block of 100 "
                                   "bytes, freed)");
  EXPECT_EQ(verdict, FaultVerdict::kMended);
  EXPECT_FALSE(memory.IsProtected(RoundDown<Address>(place, page), page));
  freed[16] = 1;
  // Behind the one of a slot that was never used, too.
  const Address wild = AddressOf(freed) + 2 * (GuardedBlocks::kMaxBytes + page);
  EXPECT_NE(SentenceOf(wild), "");
  EXPECT_EQ(verdict, FaultVerdict::kMended);
  *reinterpret_cast<char*>(wild) = 1;
  EXPECT_NE(Allocate(100), nullptr);
  EXPECT_EQ(Allocate(100), nullptr);
  guards.CheckInvariants();
  // It is still known as what it was.
  testing::internal::CaptureStderr();
  Free(freed);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("double free"),
            std::string::npos);
}

TEST_F(GuardedBlocksLogTest, ARefusedProtectionLeavesTheFaultItsCourse) {
  Start(2);
  char* const block = Allocate(100, 16, kLeft);
  memory.RefuseCall(1, ENOMEM);
  EXPECT_NE(SentenceOf(AddressOf(block) - 1), "");
  EXPECT_EQ(verdict, FaultVerdict::kExplained);
}

using GuardedBlocksDeathTest = GuardedBlocksTest;

TEST_F(GuardedBlocksDeathTest, MisuseIsReported) {
  Start(4);
  char* const live = Allocate(100, 16, kRight);
  char* const freed = Allocate(100, 16, kLeft);
  Free(freed);
  const auto aborts = testing::KilledBySignal(SIGABRT);
  EXPECT_EXIT(Free(freed), aborts,
              "double free of 0x[0-9a-f]+ \\(guarded block of 100 bytes, state "
              "free\\)\n  in free");
  EXPECT_EXIT(guards.ReportMisuse(Call(freed, PointerUse::kRealloc)), aborts,
              "realloc of freed block 0x[0-9a-f]+ \\(guarded block of 100 "
              "bytes, state free\\)\n");
  EXPECT_EXIT(Free(live + 16), aborts,
              "invalid free of 0x[0-9a-f]+ \\(interior pointer: 16 bytes into "
              "the live block 0x[0-9a-f]+, guarded block of 100 bytes\\)\n");
  EXPECT_EXIT(Free(live + 112), aborts,
              "invalid free of 0x[0-9a-f]+ \\(inside hakmem's region, but not "
              "a block\\)\n");
  EXPECT_EXIT(guards.Report(FatalWrongSize, Call(live), 90), aborts,
              "wrong-size free of 0x[0-9a-f]+ \\(given 90 bytes, guarded block "
              "of 100 bytes\\)\n");
  EXPECT_EXIT(guards.Report(FatalWrongAlignment, Call(live), 4096), aborts,
              "wrong-alignment free of 0x[0-9a-f]+ \\(given alignment 4096, "
              "guarded block of 100 bytes\\)\n");
  EXPECT_EXIT(guards.Report(FatalMismatch, Call(live), BlockKind::kNewArray,
                            BlockKind::kNew),
              aborts,
              "mismatched free of 0x[0-9a-f]+ \\(allocated by new\\[\\], freed "
              "by delete, guarded block of 100 bytes\\)\n");
}

// What another thread does with a block whose free is under way.
TEST_F(GuardedBlocksDeathTest, WhoUsesABlockThatIsBeingFreedIsToldSo) {
  Start(2);
  char* const block = Allocate(100, 16, kLeft);
  unsigned watched = 0;
  memory.WatchLongCalls([&](VmCall, Address, std::size_t) {
    ++watched;
    EXPECT_FALSE(IsLive(block));
    EXPECT_EQ(SentenceOf(AddressOf(block)),
              "hakmem: fatal: use after free of " + Hex(AddressOf(block)) +
                  " (0 bytes into a guarded block of 100 bytes, freed)");
    EXPECT_EXIT(Free(block), testing::KilledBySignal(SIGABRT),
                "double free of 0x[0-9a-f]+ \\(guarded block of 100 bytes, "
                "state free\\)\n");
  });
  Free(block);
  memory.WatchLongCalls(nullptr);
  EXPECT_EQ(watched, 1u);
}

TEST_F(GuardedBlocksDeathTest, DamageIsFoundByFree) {
  Start(4);
  const auto aborts = testing::KilledBySignal(SIGABRT);
  char* const right = Allocate(100, 16, kRight);
  char* const left = Allocate(100, 16, kLeft);
  const auto damage = [this](char* block, std::ptrdiff_t at) {
    block[at] = static_cast<char>(block[at] + 1);
    Free(block);
  };
  EXPECT_EXIT(damage(right, 100), aborts,
              "overflow of 0x[0-9a-f]+ \\(1 byte past the end of a guarded "
              "block of 100 bytes, found by free\\)\n");
  EXPECT_EXIT(damage(right, -3), aborts,
              "underflow of 0x[0-9a-f]+ \\(3 bytes before the start of a "
              "guarded block of 100 bytes, found by free\\)\n");
  EXPECT_EXIT(damage(left, 163), aborts,
              "overflow of 0x[0-9a-f]+ \\(64 bytes past the end of a guarded "
              "block of 100 bytes, found by free\\)\n");
}

}  // namespace
}  // namespace hakmem
