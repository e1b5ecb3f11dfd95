// LinuxVirtualMemory where the kernel refuses or ignores what
// newer ones do. The linker lets these functions stand before libc's (--wrap).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <set>
#include <string>

#include "allocator/platform/linux_virtual_memory.h"
#include "gtest/gtest.h"

namespace {
bool g_old_kernel = false;
bool g_out_of_memory = false;
bool g_too_many_mappings = false;
}  // namespace

extern "C" {

int __real_madvise(void* address, size_t bytes, int advice);
int __wrap_madvise(void* address, size_t bytes, int advice);
void* __real_mmap(void* address, size_t bytes, int protection, int flags,
                  int fd, off_t offset);
void* __wrap_mmap(void* address, size_t bytes, int protection, int flags,
                  int fd, off_t offset);
void* __real_mremap(void* from, size_t old_bytes, size_t bytes, int flags,
                    void* to);
void* __wrap_mremap(void* from, size_t old_bytes, size_t bytes, int flags,
                    void* to);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

int __wrap_madvise(void* address, size_t bytes, int advice) {
  // As before Linux 5.18 for locked memory, by either advice.
  if (g_old_kernel && advice != MADV_NORMAL) {
    errno = EINVAL;
    return -1;
  }
  return __real_madvise(address, bytes, advice);
}

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags,
                  int fd, off_t offset) {
  if (g_out_of_memory || g_too_many_mappings) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (g_old_kernel) flags &= ~MAP_FIXED_NOREPLACE;
  return __real_mmap(address, bytes, protection, flags, fd, offset);
}

void* __wrap_mremap(void* from, size_t old_bytes, size_t bytes, int flags,
                    void* to) {
  if (g_too_many_mappings) {
    // Linux counts before it changes anything.
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (!g_old_kernel) return __real_mremap(from, old_bytes, bytes, flags, to);
  // As before Linux 6.17 for a source of several mappings.
  munmap(to, bytes);
  errno = EFAULT;
  return MAP_FAILED;
}

long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (g_old_kernel && number == SYS_getrandom) {
    errno = ENOSYS;
    return -1;
  }
  return __real_syscall(number, arguments[0], arguments[1], arguments[2],
                        arguments[3], arguments[4], arguments[5]);
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
    g_out_of_memory = false;
    g_too_many_mappings = false;
    munmap(&At(from_), 16 * page_);
  }

  static char& At(Address address) { return *reinterpret_cast<char*>(address); }

  LinuxVirtualMemory memory_;
  const std::size_t page_;
  const Address from_;
  const Address to_;
};

TEST_F(KernelRefusalsTest, AHintIsNotEnough) {
  ASSERT_TRUE(memory_.MapAt(from_, page_).ok());
  At(from_) = 7;
  g_old_kernel = true;
  errno = 1234;
  EXPECT_EQ(memory_.MapAt(from_, page_).error_number, EEXIST);
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(At(from_), 7);
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
