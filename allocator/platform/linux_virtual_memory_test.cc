#include "allocator/platform/linux_virtual_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/call_filter.h"
#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/platform/single_threaded.h"
#include "allocator/platform/start_filter.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Some pages in the region's range, unmapped again at the end.
class LinuxVirtualMemoryTest : public testing::Test {
 protected:
  static constexpr int kErrno = 1234;

  LinuxVirtualMemoryTest()
      : page_(memory_.PageBytes()),
        base_(RoundUp(memory_.RegionRange().begin, Address{kSuperSlabBytes})) {
    errno = kErrno;
  }
  ~LinuxVirtualMemoryTest() override {
    EXPECT_EQ(errno, kErrno) << "a call has changed errno";
    munmap(reinterpret_cast<void*>(base_), kPages * page_);
  }

  Address Page(std::size_t index) const { return base_ + index * page_; }
  char* At(std::size_t index) const {
    return reinterpret_cast<char*>(Page(index));
  }
  // Through the kernel's eyes: does the page exist?
  bool IsMapped(std::size_t index) const {
    unsigned char resident;
    const int saved = errno;
    const bool mapped = mincore(At(index), page_, &resident) == 0;
    errno = saved;
    return mapped;
  }
  void Fill(std::size_t index, std::size_t pages, char value) {
    std::memset(At(index), value, pages * page_);
  }
  bool Holds(std::size_t index, std::size_t pages, char value) const {
    const std::vector<char> expected(pages * page_, value);
    return std::memcmp(At(index), expected.data(), expected.size()) == 0;
  }

  static constexpr std::size_t kPages = 64;
  LinuxVirtualMemory memory_;
  const std::size_t page_;
  const Address base_;
};

TEST_F(LinuxVirtualMemoryTest, PageSizeIsTheKernels) {
  EXPECT_EQ(page_, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

// Tables stay sparse; blocks are there to be used.
TEST_F(LinuxVirtualMemoryTest, OnlyBlocksMustFitMemory) {
  int mode = 1;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> mode;
  errno = kErrno;
  if (mode != 0) GTEST_SKIP() << "vm.overcommit_memory is not 0";
  struct sysinfo info;
  ASSERT_EQ(sysinfo(&info), 0);
  const std::size_t bytes = RoundUp(
      (std::size_t{info.totalram} + info.totalswap) * info.mem_unit + 1, page_);
  const VmStatus block = memory_.MapBlock(Page(0), bytes);
  EXPECT_EQ(block.error_number, ENOMEM);
  EXPECT_EQ(block.bytes, bytes);
  EXPECT_TRUE(memory_.MapAt(Page(0), bytes).ok());
  EXPECT_EQ(memory_.MapBlock(Page(0), page_).error_number, EEXIST);
  EXPECT_TRUE(memory_.Unmap(Page(0), bytes).ok());
  EXPECT_TRUE(memory_.MapBlock(Page(0), page_).ok());
  Fill(0, 1, 'x');
}

TEST_F(LinuxVirtualMemoryTest, MapsZeroedWritablePagesWhereAsked) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 4 * page_).ok());
  EXPECT_TRUE(Holds(0, 4, 0));
  Fill(0, 4, 7);
  EXPECT_TRUE(Holds(0, 4, 7));
}

TEST_F(LinuxVirtualMemoryTest, DoesNotReplaceAMapping) {
  ASSERT_TRUE(memory_.MapAt(Page(2), page_).ok());
  Fill(2, 1, 7);
  for (std::size_t first = 0; first <= 2; ++first) {
    EXPECT_EQ(memory_.MapAt(Page(first), 3 * page_).error_number, EEXIST);
  }
  EXPECT_TRUE(Holds(2, 1, 7));
  for (const std::size_t other : {0u, 1u, 3u, 4u})
    EXPECT_FALSE(IsMapped(other));
}

TEST_F(LinuxVirtualMemoryTest, TellsWhetherAPlaceIsTakenAndMapsNothing) {
  ASSERT_TRUE(memory_.MapAt(Page(1), page_).ok());
  Fill(1, 1, 7);
  EXPECT_TRUE(memory_.IsTaken(base_, 3 * page_));
  EXPECT_TRUE(memory_.IsTaken(base_, 2 * page_));
  EXPECT_FALSE(memory_.IsTaken(base_, page_));
  EXPECT_FALSE(memory_.IsTaken(Page(2), page_));
  EXPECT_TRUE(memory_.MapAt(base_, page_).ok());
  EXPECT_TRUE(memory_.MapAt(Page(2), page_).ok());
  EXPECT_TRUE(Holds(1, 1, 7));
}

std::uint64_t PeakOfAddressSpaceKb() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmPeak:") {
  }
  std::uint64_t kilobytes = 0;
  status >> kilobytes;
  return kilobytes;
}

// Which is among the figures that the kernel tells of the process.
TEST_F(LinuxVirtualMemoryTest, LooksAtAPlaceWithoutAPeakOfAddressSpace) {
  constexpr std::size_t kBytes = 1024 * kGiB;
  const std::uint64_t before_kb = PeakOfAddressSpaceKb();
  ASSERT_NE(before_kb, 0U);
  EXPECT_FALSE(memory_.IsTaken(memory_.RegionRange().begin, kBytes));
  EXPECT_LT(PeakOfAddressSpaceKb(), before_kb + kBytes / 2 / kKiB);
}

TEST_F(LinuxVirtualMemoryTest, SaysWhatWasRefused) {
  const VmStatus status = memory_.MapAt(base_, std::size_t{1} << 62);
  EXPECT_EQ(status.call, VmCall::kMap);
  EXPECT_EQ(status.bytes, std::size_t{1} << 62);
  EXPECT_FALSE(status.injected);
  ASSERT_TRUE(memory_.MapAt(base_, page_).ok());
  const VmStatus in_use = memory_.MapAt(base_, 2 * page_);
  EXPECT_EQ(in_use.error_number, EEXIST);
  EXPECT_EQ(in_use.bytes, 2 * page_);
}

TEST_F(LinuxVirtualMemoryTest, RefusesTheNthCallThatAsksForMemory) {
  memory_.FailNth(2, /*from_then_on=*/false);
  EXPECT_TRUE(memory_.MapAt(Page(0), page_).ok());
  EXPECT_TRUE(memory_.Purge(Page(0), page_).ok());  // does not count
  const VmStatus second = memory_.MapAt(Page(1), page_);
  EXPECT_EQ(second.error_number, ENOMEM);
  EXPECT_TRUE(second.injected);
  EXPECT_EQ(second.call, VmCall::kMap);
  EXPECT_FALSE(IsMapped(1));
  EXPECT_TRUE(memory_.MapAt(Page(1), page_).ok());
}

TEST_F(LinuxVirtualMemoryTest, RefusesTheNthCallAndAllLaterOnes) {
  memory_.FailNth(2, /*from_then_on=*/true);
  EXPECT_TRUE(memory_.MapAt(Page(0), page_).ok());
  Fill(0, 1, 5);
  for (int i = 0; i < 3; ++i) {
    const VmStatus moved = memory_.Move(Page(0), Page(4), page_, true);
    EXPECT_EQ(moved.error_number, ENOMEM);
    EXPECT_TRUE(moved.injected);
    EXPECT_EQ(moved.call, VmCall::kMove);
    EXPECT_FALSE(moved.target_lost);
    EXPECT_TRUE(IsMapped(4));
    EXPECT_TRUE(Holds(0, 1, 5));
    EXPECT_TRUE(memory_.MapAt(Page(2), page_).injected);
  }
  memory_.FailNth(0, false);
  EXPECT_TRUE(memory_.MapAt(Page(2), page_).ok());
}

// Move maps its source again, which asks for memory, too.
TEST_F(LinuxVirtualMemoryTest, ARefusalByOrderCanTakeTheSourceOfAMove) {
  ASSERT_TRUE(memory_.MapAt(Page(0), page_).ok());
  memory_.FailNth(2, /*from_then_on=*/false);
  const VmStatus moved = memory_.Move(Page(0), Page(4), page_, true);
  EXPECT_TRUE(moved.ok());
  EXPECT_TRUE(moved.source_lost);
}

TEST_F(LinuxVirtualMemoryTest, ReportsWhyMappingFailed) {
  // More than any address space holds.
  EXPECT_EQ(memory_.MapAt(base_, std::size_t{1} << 62).error_number, ENOMEM);
}

TEST_F(LinuxVirtualMemoryTest, UnmapsInTheMiddle) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(0, 3, 7);
  ASSERT_TRUE(memory_.Unmap(Page(1), page_).ok());
  EXPECT_TRUE(IsMapped(0));
  EXPECT_FALSE(IsMapped(1));
  EXPECT_TRUE(IsMapped(2));
  EXPECT_TRUE(Holds(2, 1, 7));
  EXPECT_EQ(memory_.Unmap(Page(0) + 1, page_).error_number, EINVAL);
}

TEST_F(LinuxVirtualMemoryTest, PurgedPagesReadAsZero) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(0, 3, 7);
  ASSERT_TRUE(memory_.Purge(Page(1), page_).ok());
  EXPECT_TRUE(Holds(0, 1, 7));
  EXPECT_TRUE(Holds(1, 1, 0));
  EXPECT_TRUE(Holds(2, 1, 7));
  EXPECT_EQ(memory_.Purge(Page(8), page_).error_number, ENOMEM);
}

// MADV_DONTNEED alone is refused.
TEST_F(LinuxVirtualMemoryTest, LockedPagesGoBackUnlocked) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(0, 3, 7);
  auto* const locked = reinterpret_cast<void*>(Page(1));
  // Not mlock, which sanitizers leave undone.
  if (syscall(SYS_mlock, locked, page_) != 0) {
    errno = kErrno;
    GTEST_SKIP() << "nothing may be locked here";
  }
  ASSERT_NE(madvise(locked, page_, MADV_DONTNEED), 0);
  errno = kErrno;
  EXPECT_TRUE(memory_.Purge(Page(0), 3 * page_).ok());
  EXPECT_TRUE(Holds(0, 3, 0));
  EXPECT_EQ(madvise(locked, page_, MADV_DONTNEED), 0);
}

// In a child: what becomes of a page that the program has not locked by itself.
TEST_F(LinuxVirtualMemoryTest, WhatMlockallLocksGoesBackLocked) {
  enum : int { kGoesBackLocked, kStays, kIsUnlocked, kMayNotLock, kOldKernel };
  for (const int which : {MCL_CURRENT, MCL_FUTURE}) {
    const pid_t child = fork();
    if (child == 0) {
      const auto lock = [which] {
        if (syscall(SYS_mlockall, which) != 0) _exit(kMayNotLock);
      };
      if (which == MCL_FUTURE) lock();
      if (!memory_.MapAt(Page(0), page_).ok()) _exit(kMayNotLock);
      Fill(0, 1, 7);
      if (which == MCL_CURRENT) lock();
      const VmStatus status = memory_.Purge(Page(0), page_);
      if (status.error_number == EINVAL) _exit(kOldKernel);
      if (!status.ok() || !Holds(0, 1, 0)) _exit(kStays);
      _exit(madvise(At(0), page_, MADV_DONTNEED) == 0 ? kIsUnlocked
                                                      : kGoesBackLocked);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) >= kMayNotLock) {
      GTEST_SKIP() << "mlockall is not allowed here, or Linux before 5.18";
    }
    EXPECT_EQ(WEXITSTATUS(status), kGoesBackLocked) << which;
  }
}

TEST_F(LinuxVirtualMemoryTest, PopulatedPagesKeepTheirBytes) {
  ASSERT_TRUE(memory_.MapAt(base_, 4 * page_).ok());
  Fill(1, 1, 7);
  memory_.Populate(base_, 4 * page_);
  EXPECT_TRUE(Holds(0, 1, 0));
  EXPECT_TRUE(Holds(1, 1, 7));
  EXPECT_TRUE(Holds(2, 2, 0));
}

TEST_F(LinuxVirtualMemoryTest, AskingForHugePagesKeepsBytesAndMappings) {
  ASSERT_TRUE(memory_.MapAt(base_, kSuperSlabBytes).ok());
  Fill(1, 1, 7);
  memory_.AskForHugePages(base_, kSuperSlabBytes);
  EXPECT_TRUE(Holds(0, 1, 0));
  EXPECT_TRUE(Holds(1, 1, 7));
  EXPECT_TRUE(memory_.Unmap(base_, kSuperSlabBytes).ok());
  // An address where nothing is mapped: a wish that nobody can fulfil.
  memory_.AskForHugePages(base_, page_);
  memory_.Populate(base_, page_);
}

TEST_F(LinuxVirtualMemoryTest, MovesPagesToUnmappedAddresses) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 2 * page_).ok());
  Fill(0, 2, 7);
  ASSERT_TRUE(memory_.Move(Page(0), Page(8), 2 * page_, false).ok());
  EXPECT_TRUE(Holds(8, 2, 7));
  EXPECT_FALSE(IsMapped(0));
  EXPECT_FALSE(IsMapped(1));
}

TEST_F(LinuxVirtualMemoryTest, MovesPagesOverMappedOnes) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 16 * page_).ok());
  Fill(0, 2, 7);
  Fill(8, 4, 9);
  ASSERT_TRUE(memory_.Move(Page(0), Page(8), 2 * page_, false).ok());
  EXPECT_TRUE(Holds(8, 2, 7));
  EXPECT_TRUE(Holds(10, 2, 9));
  EXPECT_FALSE(IsMapped(0));
}

TEST_F(LinuxVirtualMemoryTest, MovesPagesAndKeepsTheSource) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 16 * page_).ok());
  Fill(0, 2, 7);
  const VmStatus status = memory_.Move(Page(0), Page(8), 2 * page_, true);
  ASSERT_TRUE(status.ok());
  EXPECT_FALSE(status.source_lost);
  EXPECT_TRUE(Holds(8, 2, 7));
  EXPECT_TRUE(Holds(0, 2, 0));
}

TEST_F(LinuxVirtualMemoryTest, MovesSeveralMappingsWholeOrNotAtAll) {
  // Pages that were moved do not merge with their neighbours.
  ASSERT_TRUE(memory_.MapAt(Page(0), 16 * page_).ok());
  Fill(0, 3, 7);
  ASSERT_TRUE(memory_.Move(Page(0), Page(9), page_, true).ok());
  Fill(9, 1, 7);
  const VmStatus status = memory_.Move(Page(8), Page(20), 3 * page_, false);
  const std::size_t now_at = status.ok() ? 20 : 8;
  EXPECT_TRUE(status.ok() || status.error_number == EFAULT);
  EXPECT_TRUE(Holds(now_at, 1, 0));
  EXPECT_TRUE(Holds(now_at + 1, 1, 7));
  EXPECT_TRUE(Holds(now_at + 2, 1, 0));
  EXPECT_TRUE(IsMapped(20));
}

TEST_F(LinuxVirtualMemoryTest, RefusedMoveMapsItsTargetAnew) {
  ASSERT_TRUE(memory_.MapAt(Page(9), page_).ok());
  Fill(9, 1, 7);
  const VmStatus status = memory_.Move(Page(0), Page(8), 3 * page_, false);
  EXPECT_EQ(status.error_number, EFAULT);
  EXPECT_FALSE(status.target_lost);
  EXPECT_TRUE(Holds(8, 3, 0));
}

TEST_F(LinuxVirtualMemoryTest, RandomNumbersDiffer) {
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 100; ++i) numbers.insert(memory_.Random());
  EXPECT_EQ(numbers.size(), 100u);
}

TEST_F(LinuxVirtualMemoryTest, TheTimeIsTheKernels) {
  const auto now_ms = [] {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec * 1000 +
                                      now.tv_nsec / 1'000'000);
  };
  const std::uint64_t before_ms = now_ms();
  const std::uint64_t told_ms = memory_.NowMs();
  EXPECT_GE(told_ms, before_ms);
  EXPECT_LE(told_ms, now_ms());
}

TEST_F(LinuxVirtualMemoryTest, RegionRangeHasRoomAtBothEnds) {
  const auto range = memory_.RegionRange();
  ASSERT_LT(range.begin, range.end);
  EXPECT_GE(range.end - range.begin, 8 * kGiB);
  for (const Address first :
       {range.begin, RoundDown(range.begin / 2 + range.end / 2, page_),
        range.end - page_}) {
    ASSERT_TRUE(memory_.MapAt(first, page_).ok()) << std::hex << first;
    // Under a sanitizer this write is instrumented and finds its shadow.
    *reinterpret_cast<volatile char*>(first) = 1;
    EXPECT_TRUE(memory_.Unmap(first, page_).ok());
  }
}

TEST_F(LinuxVirtualMemoryTest, ProtectedPagesStayInaccessible) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(0, 3, 1);
  ASSERT_TRUE(memory_.Protect(Page(1), page_).ok());
  ASSERT_TRUE(memory_.Purge(Page(0), 3 * page_).ok());
  EXPECT_TRUE(Holds(0, 1, 0));
  EXPECT_TRUE(Holds(2, 1, 0));
  EXPECT_DEATH(*At(1) = 1, "");
  errno = kErrno;
}

TEST_F(LinuxVirtualMemoryTest, UnprotectedPagesHaveTheirBytes) {
  ASSERT_TRUE(memory_.Reserve(Page(0), 3 * page_).ok());
  ASSERT_TRUE(memory_.Unprotect(Page(1), page_).ok());
  EXPECT_TRUE(Holds(1, 1, 0));
  Fill(1, 1, 7);
  ASSERT_TRUE(memory_.Protect(Page(1), page_).ok());
  ASSERT_TRUE(memory_.Unprotect(Page(0), 2 * page_).ok());
  EXPECT_TRUE(Holds(0, 1, 0));
  EXPECT_TRUE(Holds(1, 1, 7));
  EXPECT_FALSE(memory_.Unprotect(Page(4), page_).ok());
}

TEST_F(LinuxVirtualMemoryTest, ReservedPagesAreInaccessible) {
  ASSERT_TRUE(memory_.Reserve(Page(0), 2 * page_).ok());
  EXPECT_EQ(memory_.MapAt(Page(1), page_).error_number, EEXIST);
  EXPECT_DEATH(*At(1) = 1, "");
  errno = kErrno;
}

TEST_F(LinuxVirtualMemoryTest, FindsResidentPages) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(1, 1, 1);
  unsigned char resident[3] = {9, 9, 9};
  ASSERT_TRUE(memory_.FindResident(Page(0), 3 * page_, resident).ok());
  EXPECT_EQ(resident[0], 0);
  EXPECT_EQ(resident[1], 1);
  EXPECT_EQ(resident[2], 0);
  EXPECT_FALSE(memory_.FindResident(Page(4), page_, resident).ok());
}

// Under a filter that is there at the start, and may kill for `mincore` or the
// question whether there is one, neither is called.
TEST_F(LinuxVirtualMemoryTest, FindsResidentPagesUnderAFilter) {
  if (kThreadSanitizer || !IsSingleThreaded()) GTEST_SKIP() << "a thread";
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(1, 1, 1);
  const auto find_without_mincore = [&](std::initializer_list<int> calls) {
    unsigned char resident[3] = {9, 9, 9};
    if (!ForbidSystemCalls(calls)) _exit(0);
    g_filter.store(Filter::kUnknown, std::memory_order_relaxed);
    const bool good = memory_.FindResident(Page(0), 3 * page_, resident).ok() &&
                      resident[0] == 0 && resident[1] == 1 && resident[2] == 0;
    _exit(good ? 0 : 1);
  };
  EXPECT_EXIT(find_without_mincore({SYS_mincore}), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(find_without_mincore({SYS_mincore, SYS_prctl}),
              testing::ExitedWithCode(0), "");
}

// The file's descriptor might be counted on by the other thread.
TEST_F(LinuxVirtualMemoryTest, OpensNothingBesideAThread) {
  ASSERT_TRUE(memory_.MapAt(Page(0), page_).ok());
  unsigned char page = 9;
  std::thread([&] {
    EXPECT_TRUE(memory_.FindResident(Page(0), page_, &page).ok());
    g_filter.store(Filter::kAtStart, std::memory_order_relaxed);
    EXPECT_FALSE(memory_.FindResident(Page(0), page_, &page).ok());
    g_filter.store(Filter::kNone, std::memory_order_relaxed);
  }).join();
  errno = kErrno;
}

// One that comes later may kill for all that glibc's malloc does not call.
TEST_F(LinuxVirtualMemoryTest, AsksNothingOnceAFilterIsNoted) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  unsigned char pages[3] = {};
  ASSERT_TRUE(memory_.FindResident(Page(0), 3 * page_, pages).ok());
  const auto find = [&] {
    NoteFilter();
    if (!ForbidSystemCalls({SYS_mincore, SYS_prctl, SYS_openat, SYS_pread64,
                            SYS_read, SYS_close, SYS_process_vm_readv},
                           kKills)) {
      _exit(0);
    }
    const bool told = memory_.FindResident(Page(0), 3 * page_, pages).ok() ||
                      !memory_.Purge(Page(0), page_).ok();
    _exit(told ? 1 : 0);
  };
  EXPECT_EXIT(find(), testing::ExitedWithCode(0), "");
}

TEST_F(LinuxVirtualMemoryTest, SealedObjectsAreReadOnly) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 2 * page_).ok());
  Fill(0, 2, 1);
  EXPECT_FALSE(SealObject(At(0) + 8, page_));
  // As it would be of a kernel whose pages are larger than the object.
  EXPECT_FALSE(SealObject(At(0), page_ / 2));
  ASSERT_TRUE(SealObject(At(0), page_));
  EXPECT_TRUE(Holds(0, 2, 1));
  *At(1) = 2;
  EXPECT_DEATH(*At(0) = 2, "");
  errno = kErrno;
}

TEST_F(LinuxVirtualMemoryTest, KnowsTheLimitOnMappings) {
  EXPECT_GE(memory_.MaxMappings(), 1000U);
}

}  // namespace
}  // namespace hakmem
