#include "allocator/process/descriptor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

class DescriptorTest : public testing::Test {
 protected:
  DescriptorTest() { EXPECT_EQ(pipe(pipe_), 0); }
  ~DescriptorTest() override {
    for (const int fd : pipe_) close(fd);
  }

  int pipe_[2];
};

TEST_F(DescriptorTest, KnowsFilesApart) {
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

TEST_F(DescriptorTest, MovesADescriptorUp) {
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

TEST_F(DescriptorTest, WritesOnce) {
  EXPECT_EQ(WriteOnce(pipe_[1], "hello"), 5u);
  char read_back[8] = {};
  EXPECT_EQ(read(pipe_[0], read_back, sizeof(read_back)), 5);
  EXPECT_STREQ(read_back, "hello");
  EXPECT_EQ(WriteOnce(-1, "hello"), 0u);
}

TEST_F(DescriptorTest, SaysHowMuchOfALineFitted) {
  ASSERT_EQ(fcntl(pipe_[1], F_SETFL, O_NONBLOCK), 0);
  const std::string much(1 << 20, 'x');
  const std::size_t written = WriteOnce(pipe_[1], much);
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, much.size());
  EXPECT_EQ(WriteOnce(pipe_[1], "more"), 0u);
}

volatile sig_atomic_t g_pipe_signals = 0;

// The default action would end this test.
TEST_F(DescriptorTest, NoSignalComesWhereNobodyReads) {
  close(pipe_[0]);
  pipe_[0] = -1;
  EXPECT_EQ(WriteOnce(pipe_[1], "hello"), 0u);
  // The program's own are as ever.
  signal(SIGPIPE, [](int) { g_pipe_signals = g_pipe_signals + 1; });
  EXPECT_EQ(WriteOnce(pipe_[1], "hello"), 0u);
  EXPECT_EQ(g_pipe_signals, 0);
  EXPECT_EQ(write(pipe_[1], "hello", 5), -1);
  EXPECT_EQ(g_pipe_signals, 1);
  signal(SIGPIPE, SIG_DFL);
}

// The default action would end this test.
TEST(WriteOnceTest, NoSignalComesWhereTheFileMayNotGetLonger) {
  const std::string path = testing::TempDir() + "/write_once_test";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit nothing = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &nothing), 0);
  int error_number = 0;
  const std::size_t written = WriteOnce(file, "hello", error_number);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(written, 0u);
  EXPECT_EQ(error_number, EFBIG);
  close(file);
  unlink(path.c_str());
}

TEST(LockFileTest, IsHeldUntilTheFileIsClosed) {
  const std::string path = testing::TempDir() + "/lock_file_test";
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
  const int one = open(path.c_str(), kFlags, 0600);
  const int other = open(path.c_str(), kFlags, 0600);
  ASSERT_TRUE(LockFile(one));
  errno = 77;
  EXPECT_FALSE(LockFile(other));
  EXPECT_EQ(errno, 77);
  std::thread closer([one] {
    usleep(50'000);
    close(one);
  });
  EXPECT_TRUE(LockFile(other));
  closer.join();
  close(other);
  unlink(path.c_str());
}

TEST_F(DescriptorTest, LocksNothingThatCannotBeWritten) {
  EXPECT_FALSE(LockFile(pipe_[0]));
}

}  // namespace
}  // namespace hakmem
