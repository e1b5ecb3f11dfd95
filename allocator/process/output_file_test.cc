#include "allocator/process/output_file.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>

#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() { EXPECT_EQ(pipe(pipe_), 0); }
  ~OutputFileTest() override {
    for (const int fd : pipe_) close(fd);
  }

  int pipe_[2];
};

TEST_F(OutputFileTest, KnowsFilesApart) {
  FileId one;
  FileId same;
  FileId other;
  const int null = open("/dev/null", O_WRONLY);
  ASSERT_TRUE(IdentifyFd(pipe_[0], one));
  ASSERT_TRUE(IdentifyFd(pipe_[1], same));
  ASSERT_TRUE(IdentifyFd(null, other));
  EXPECT_EQ(one, same);
  EXPECT_FALSE(one == other);
  close(null);
  errno = 77;
  EXPECT_FALSE(IdentifyFd(null, one));
  EXPECT_EQ(errno, 77);
}

TEST_F(OutputFileTest, MovesADescriptorUp) {
  FileId before;
  ASSERT_TRUE(IdentifyFd(pipe_[1], before));
  const int old = pipe_[1];
  pipe_[1] = MoveFdOutOfTheWay(old);
  EXPECT_GE(pipe_[1], 30);
  FileId after;
  EXPECT_FALSE(IdentifyFd(old, after));
  ASSERT_TRUE(IdentifyFd(pipe_[1], after));
  EXPECT_EQ(before, after);
  EXPECT_EQ(fcntl(pipe_[1], F_GETFD), FD_CLOEXEC);
}

TEST(LockFileTest, IsHeldUntilTheFileIsClosed) {
  const std::string path = testing::TempDir() + "/lock_file_test";
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
  const int one = open(path.c_str(), kFlags, 0600);
  const int other = open(path.c_str(), kFlags, 0600);
  ASSERT_TRUE(LockFile(one));
  errno = 77;
  EXPECT_FALSE(LockFile(other, 1));
  EXPECT_EQ(errno, 77);
  const pid_t self = gettid();
  TestThread closer([one, self] {
    AwaitThat([self] { return SleepsIn(self, SYS_nanosleep); });
    close(one);
  });
  EXPECT_TRUE(LockFile(other, std::numeric_limits<int>::max()));
  close(other);
  unlink(path.c_str());
}

TEST_F(OutputFileTest, LocksNothingThatCannotBeWritten) {
  EXPECT_FALSE(LockFile(pipe_[0]));
}

}  // namespace
}  // namespace hakmem
