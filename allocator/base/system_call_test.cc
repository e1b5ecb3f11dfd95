#include "allocator/base/system_call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(SystemCallTest, AnswersAsTheKernelDoes) {
  errno = 1234;
  EXPECT_EQ(SystemCall(SYS_getpid), getpid());
  const long refused = SystemCall(SYS_close, -1);
  EXPECT_EQ(refused, -EBADF);
  EXPECT_EQ(ErrorOf(refused), EBADF);
  EXPECT_EQ(errno, 1234);
}

// The errors are the last 4,095 numbers; an address before them is none.
TEST(SystemCallTest, TellsErrorsFromOtherAnswers) {
  EXPECT_EQ(ErrorOf(0), 0);
  EXPECT_EQ(ErrorOf(7), 0);
  EXPECT_EQ(ErrorOf(-1), 1);
  EXPECT_EQ(ErrorOf(-4095), 4095);
  EXPECT_EQ(ErrorOf(-4096), 0);
}

// mmap has six arguments: each counts here.
TEST(SystemCallTest, PassesSixArguments) {
  const auto page = static_cast<unsigned long>(sysconf(_SC_PAGESIZE));
  const int fd = memfd_create("six", 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(2 * page)), 0);
  ASSERT_EQ(pwrite(fd, "x", 1, static_cast<off_t>(page)), 1);
  void* const place =
      mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  const long got = SystemCall(SYS_mmap, place, page, PROT_READ,
                              MAP_PRIVATE | MAP_FIXED, fd, page);
  ASSERT_EQ(reinterpret_cast<void*>(got), place);
  EXPECT_EQ(*static_cast<const char*>(place), 'x');
  EXPECT_EQ(SystemCall(SYS_munmap, place, page), 0);
  close(fd);
}

}  // namespace
}  // namespace hakmem
