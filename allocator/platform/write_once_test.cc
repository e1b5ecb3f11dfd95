#include "allocator/platform/write_once.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

class WriteOnceTest : public testing::Test {
 protected:
  WriteOnceTest() { EXPECT_EQ(pipe(pipe_), 0); }
  ~WriteOnceTest() override {
    for (const int fd : pipe_) close(fd);
  }

  int pipe_[2];
};

TEST_F(WriteOnceTest, WritesOnce) {
  EXPECT_EQ(WriteOnce(pipe_[1], "hello"), 5u);
  char read_back[8] = {};
  EXPECT_EQ(read(pipe_[0], read_back, sizeof(read_back)), 5);
  EXPECT_STREQ(read_back, "hello");
  EXPECT_EQ(WriteOnce(-1, "hello"), 0u);
}

TEST_F(WriteOnceTest, SaysHowMuchOfALineFitted) {
  ASSERT_EQ(fcntl(pipe_[1], F_SETFL, O_NONBLOCK), 0);
  const std::string much(1 << 20, 'x');
  const std::size_t written = WriteOnce(pipe_[1], much);
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, much.size());
  EXPECT_EQ(WriteOnce(pipe_[1], "more"), 0u);
}

volatile sig_atomic_t g_pipe_signals = 0;

// The default action would end this test.
TEST_F(WriteOnceTest, NoSignalComesWhereNobodyReads) {
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
TEST_F(WriteOnceTest, NoSignalComesWhereTheFileMayNotGetLonger) {
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

}  // namespace
}  // namespace hakmem
