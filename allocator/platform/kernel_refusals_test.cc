// LinuxVirtualMemory where the kernel refuses or ignores what
// newer ones do. The linker lets these functions stand before libc's (--wrap).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "allocator/base/line_end.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "gtest/gtest.h"

namespace {
bool g_old_kernel = false;
bool g_in_valgrind = false;
bool g_idle_kernel = false;
bool g_out_of_memory = false;
bool g_too_many_mappings = false;
bool g_no_guard_regions = false;
int g_calls = 0;  // of mmap and getrandom
std::size_t g_longest_mapping = 0;
}  // namespace

extern "C" {

// hakmem::RawSystemCall, and RawSystemCall6, by which mmap goes.
long __real__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e);
long __wrap__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e);
long __real__ZN6hakmem14RawSystemCall6Elmmmmmm(long number, unsigned long a,
                                               unsigned long b, unsigned long c,
                                               unsigned long d, unsigned long e,
                                               unsigned long f);
long __wrap__ZN6hakmem14RawSystemCall6Elmmmmmm(long number, unsigned long a,
                                               unsigned long b, unsigned long c,
                                               unsigned long d, unsigned long e,
                                               unsigned long f);
// What sanitizers must hear of.
int __real_madvise(void* address, size_t bytes, int advice);
int __wrap_madvise(void* address, size_t bytes, int advice);

int __wrap_madvise(void* address, size_t bytes, int advice) {
  const long answer = __wrap__ZN6hakmem13RawSystemCallElmmmmm(
      SYS_madvise, reinterpret_cast<unsigned long>(address), bytes,
      static_cast<unsigned long>(advice), 0, 0);
  if (answer == 0) return 0;
  errno = static_cast<int>(-answer);
  return -1;
}

long __wrap__ZN6hakmem14RawSystemCall6Elmmmmmm(long number, unsigned long a,
                                               unsigned long b, unsigned long c,
                                               unsigned long d, unsigned long e,
                                               unsigned long f) {
  if (number == SYS_mmap) {
    ++g_calls;
    if (g_out_of_memory || g_too_many_mappings) return -ENOMEM;
    // As in valgrind 3.19, which passes a refused mapping on for address 0. The
    // first page has nothing.
    if (g_in_valgrind && (d & MAP_PRIVATE) == 0) {
      return b > hakmem::LinuxVirtualMemory().PageBytes() ? -EEXIST : -EINVAL;
    }
    if (g_old_kernel || g_in_valgrind) {
      d &= ~static_cast<unsigned long>(MAP_FIXED_NOREPLACE);
    }
    if ((d & MAP_PRIVATE) != 0)
      g_longest_mapping = std::max(g_longest_mapping, b);
  }
  return __real__ZN6hakmem14RawSystemCall6Elmmmmmm(number, a, b, c, d, e, f);
}

long __wrap__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e) {
  switch (number) {
    case SYS_madvise:
      // As before Linux 5.18 for locked memory, by either advice.
      if (g_old_kernel && c != MADV_NORMAL) return -EINVAL;
      // MADV_GUARD_INSTALL, for which page tables are to be had.
      if (g_no_guard_regions && c == 102) return -ENOMEM;
      // As in an emulator that takes advice for no more than that.
      if (g_idle_kernel) return 0;
      break;
    case SYS_mremap:
      // Linux counts before it changes anything.
      if (g_too_many_mappings) return -ENOMEM;
      if (!g_old_kernel) break;
      // As before Linux 6.17 for a source of several mappings.
      munmap(reinterpret_cast<void*>(e), c);
      return -EFAULT;
    case SYS_getrandom:
      ++g_calls;
      if (g_old_kernel) return -ENOSYS;
      break;
    default:
      break;
  }
  return __real__ZN6hakmem13RawSystemCallElmmmmm(number, a, b, c, d, e);
}

}  // extern "C"

namespace hakmem {
namespace {

class KernelRefusalsTest : public testing::Test {
 protected:
  KernelRefusalsTest()
      : page_(memory_.PageBytes()),
        from_(memory_.RegionRange().begin),
        to_(from_ + 8 * page_) {}
  ~KernelRefusalsTest() override {
    g_old_kernel = false;
    g_in_valgrind = false;
    g_idle_kernel = false;
    g_out_of_memory = false;
    g_too_many_mappings = false;
    g_no_guard_regions = false;
    munmap(&At(from_), 16 * page_);
  }

  static char& At(Address address) { return *reinterpret_cast<char*>(address); }
  // The kernel reads there in the program's place.
  static bool HasAccess(Address address) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const bool has = write(ends[1], &At(address), 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return has;
  }
  // Where the kernel's mappings in a range begin.
  static std::set<Address> MappingsIn(Address begin, std::size_t bytes) {
    std::set<Address> starts;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const Address start = std::stoull(line, nullptr, 16);
      if (start - begin < bytes) starts.insert(start);
    }
    return starts;
  }

  LinuxVirtualMemory memory_;
  const std::size_t page_;
  const Address from_;
  const Address to_;
};

TEST_F(KernelRefusalsTest, ManyRandomNumbersTakeFewCalls) {
  for (const bool old_kernel : {false, true}) {
    g_old_kernel = old_kernel;
    std::uint64_t words[40] = {};
    g_calls = 0;
    memory_.FillRandom(words, std::size(words));
    EXPECT_EQ(g_calls, 2);
    const std::set<std::uint64_t> different(std::begin(words), std::end(words));
    EXPECT_EQ(different.size(), std::size(words));
    EXPECT_EQ(different.count(0), 0U);
  }
}

TEST_F(KernelRefusalsTest, OneAnswerShowsThatTheKernelTellsWhatIsTaken) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  for (int asked = 0; asked < 10; ++asked) {
    g_calls = 0;
    EXPECT_FALSE(memory_.IsTaken(to_, page_));
    EXPECT_EQ(g_calls, asked == 0 ? 2 : 1);
    EXPECT_TRUE(memory_.IsTaken(from_, page_));
  }
}

TEST_F(KernelRefusalsTest, TakenIsWhatLiesThere) {
  g_in_valgrind = true;
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  for (int asked = 0; asked < 2; ++asked) {
    EXPECT_FALSE(memory_.IsTaken(to_, 2 * page_));
    EXPECT_TRUE(memory_.IsTaken(from_, 2 * page_));
  }
}

TEST_F(KernelRefusalsTest, AHintIsNotEnough) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  At(from_) = 7;
  g_old_kernel = true;
  errno = 1234;
  EXPECT_EQ(memory_.MapAt(from_, page_).error_number, EEXIST);
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(At(from_), 7);
}

// To map much is slow in some emulators, and those do not say what is taken.
TEST_F(KernelRefusalsTest, WhatIsKnownToBeTakenIsNotMapped) {
  const std::size_t bytes = std::size_t{1} << 30;
  const auto here = reinterpret_cast<Address>(&memory_) & -page_;
  g_old_kernel = true;
  g_longest_mapping = 0;
  EXPECT_TRUE(memory_.IsTaken(here - bytes / 2, bytes));
  EXPECT_TRUE(memory_.IsTaken(here, page_));
  EXPECT_EQ(g_longest_mapping, 0U);
  EXPECT_FALSE(memory_.IsTaken(from_, 8 * page_));
  EXPECT_EQ(g_longest_mapping, 8 * page_);
}

TEST_F(KernelRefusalsTest, ARefusedMoveLeavesItsTargetMapped) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  ASSERT_TRUE(memory_.MapAt(to_, page_).ok());
  At(from_) = 7;
  g_old_kernel = true;
  for (const bool keep_source : {false, true}) {
    errno = 1234;
    const VmStatus status = memory_.Move(from_, to_, page_, keep_source);
    EXPECT_EQ(errno, 1234);
    EXPECT_EQ(status.error_number, EFAULT);
    EXPECT_FALSE(status.target_lost);
    EXPECT_EQ(At(from_), 7);
    EXPECT_EQ(At(to_), 0);  // mapped: no crash
    At(to_) = 5;
  }
}

TEST_F(KernelRefusalsTest, ARefusedMoveSaysThatItsTargetIsLost) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  ASSERT_TRUE(memory_.MapAt(to_, page_).ok());
  At(from_) = 7;
  g_old_kernel = true;
  g_out_of_memory = true;
  const VmStatus status = memory_.Move(from_, to_, page_, false);
  EXPECT_EQ(status.error_number, EFAULT);
  EXPECT_TRUE(status.target_lost);
  EXPECT_EQ(At(from_), 7);
}

// Nor can it be unmapped where that would split a mapping, as here.
TEST_F(KernelRefusalsTest, AMoveBeyondTheLimitOnMappingsKeepsItsTarget) {
  ASSERT_TRUE(memory_.MapAt(from_, 12 * page_).ok());
  At(from_) = 7;
  At(to_) = 5;
  At(to_ + 2 * page_) = 6;
  g_too_many_mappings = true;
  errno = 1234;
  const VmStatus status = memory_.Move(from_, to_, 2 * page_, true);
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(status.error_number, ENOMEM);
  EXPECT_FALSE(status.target_lost);
  EXPECT_EQ(At(from_), 7);
  EXPECT_EQ(At(to_), 0);  // mapped: no crash
  EXPECT_EQ(At(to_ + 2 * page_), 6);
}

TEST_F(KernelRefusalsTest, AMoveSaysThatItsSourceIsLost) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  At(from_) = 7;
  g_out_of_memory = true;
  errno = 1234;
  const VmStatus status = memory_.Move(from_, to_, page_, true);
  EXPECT_EQ(errno, 1234);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(status.source_lost);
  EXPECT_EQ(At(to_), 7);
}

// Standard error has no reader: the signal's default action would end this.
TEST_F(KernelRefusalsTest, LockedMemoryIsToldOfOnce) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  g_old_kernel = true;
  testing::internal::CaptureStderr();
  EXPECT_EQ(memory_.Purge(from_, page_).error_number, EINVAL);
  EXPECT_EQ(memory_.Purge(from_, page_).error_number, EINVAL);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.find("hakmem: memory is locked"), 0u);
  EXPECT_EQ(told.rfind("hakmem:"), 0u);
  EXPECT_TRUE(told.ends_with(LineEnd().text())) << told;

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const int standard_error = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  LinuxVirtualMemory memory;
  errno = 1234;
  const VmStatus status = memory.Purge(from_, page_);
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  close(ends[1]);
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(status.error_number, EINVAL);
}

// Else what is not known to be zero would be taken for it.
TEST_F(KernelRefusalsTest, AKernelThatTakesNoPagesBackIsFoundOut) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  At(from_) = 7;
  g_idle_kernel = true;
  errno = 1234;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(memory_.Purge(from_, page_).error_number, EOPNOTSUPP);
  }
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(At(from_), 7);
  // What replaces the mapping needs no advice.
  EXPECT_TRUE(memory_.Renew(from_, page_).ok());
  EXPECT_EQ(At(from_), 0);
}

// A guard region that memory was short for is a page without access, and the
// next one a guard region again.
TEST_F(KernelRefusalsTest, OneRefusalIsNotTheEndOfGuardRegions) {
  ASSERT_TRUE(memory_.MapAt(from_, 4 * page_).ok());
  ASSERT_TRUE(memory_.Close(from_, page_).ok());
  if (memory_.ClosingSplits()) GTEST_SKIP() << "Linux before 6.13";
  g_no_guard_regions = true;
  ASSERT_TRUE(memory_.Close(from_ + page_, page_).ok());
  ASSERT_TRUE(memory_.MapClosed(to_, page_).ok());
  EXPECT_FALSE(memory_.ClosingSplits());
  g_no_guard_regions = false;
  const std::set<Address> before = MappingsIn(from_, 4 * page_);
  ASSERT_TRUE(memory_.Close(from_ + 3 * page_, page_).ok());
  EXPECT_EQ(MappingsIn(from_, 4 * page_), before);
  ASSERT_TRUE(memory_.Open(from_, 4 * page_).ok());
  ASSERT_TRUE(memory_.Open(to_, page_).ok());
  for (int page = 0; page < 4; ++page) At(from_ + page * page_) = 7;
  At(to_) = 7;
}

// Else whatever leaves its block would go on.
TEST_F(KernelRefusalsTest, AKernelThatTakesAnyAdviceHasNoGuardRegions) {
  g_idle_kernel = true;
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  ASSERT_TRUE(memory_.Close(from_, page_).ok());
  ASSERT_TRUE(memory_.MapClosed(to_, page_).ok());
  EXPECT_FALSE(HasAccess(from_));
  EXPECT_FALSE(HasAccess(to_));
  EXPECT_TRUE(memory_.ClosingSplits());
  ASSERT_TRUE(memory_.Open(from_, page_).ok());
  ASSERT_TRUE(memory_.Open(to_, page_).ok());
  EXPECT_TRUE(HasAccess(from_));
  EXPECT_TRUE(HasAccess(to_));
}

TEST_F(KernelRefusalsTest, RandomNumbersDifferWithoutGetrandom) {
  g_old_kernel = true;
  errno = 1234;
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 100; ++i) numbers.insert(memory_.Random());
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_EQ(errno, 1234);
}

}  // namespace
}  // namespace hakmem
