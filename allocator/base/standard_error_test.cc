#include "allocator/base/standard_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "allocator/base/call_filter.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class StandardErrorTest : public testing::Test {
 protected:
  StandardErrorTest() : kept_(dup(STDERR_FILENO)) {}
  ~StandardErrorTest() override {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
  }
  // What is open as standard error then.
  static void Replace() {
    const int other = open("/", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(other, 0);
    ASSERT_EQ(dup2(other, STDERR_FILENO), STDERR_FILENO);
    close(other);
  }

  const int kept_;
};

TEST_F(StandardErrorTest, IsWhatItWasWhenItWasNoted) {
  EXPECT_EQ(StandardError(), STDERR_FILENO);
  Replace();
  EXPECT_EQ(StandardError(), STDERR_FILENO);  // not noted yet
  dup2(kept_, STDERR_FILENO);
  NoteStandardError();
  EXPECT_EQ(StandardError(), STDERR_FILENO);
  errno = 1234;
  close(STDERR_FILENO);
  EXPECT_EQ(StandardError(), -1);
  Replace();
  EXPECT_EQ(StandardError(), -1);
  dup2(kept_, STDERR_FILENO);
  EXPECT_EQ(StandardError(), STDERR_FILENO);
  EXPECT_EQ(errno, 1234);

  // None, where there was none.
  close(STDERR_FILENO);
  NoteStandardError();
  EXPECT_EQ(StandardError(), -1);
  Replace();
  EXPECT_EQ(StandardError(), -1);
  dup2(kept_, STDERR_FILENO);
  EXPECT_EQ(StandardError(), -1);
}

// In children: a filter stays noted.
TEST_F(StandardErrorTest, IsUnderAFilterWhatItWasBefore) {
  EXPECT_EXIT(
      {
        NoteStandardError();
        SettleStandardError();
        NoteFilter();
        Replace();
        _exit(StandardError() == STDERR_FILENO ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
  EXPECT_EXIT(
      {
        NoteStandardError();
        Replace();
        SettleStandardError();
        NoteFilter();
        _exit(StandardError() == -1 && LogInItsPlace() == -1 ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(StandardErrorTest, TellsALogFromAFileOfData) {
  const auto becomes = [](const char* path, int flags) {
    const int other = open(path, flags, 0600);
    EXPECT_GE(other, 0);
    dup2(other, STDERR_FILENO);
    close(other);
    return LogInItsPlace();
  };
  const std::string path = testing::TempDir() + "standard_error_test";
  EXPECT_EQ(becomes(path.c_str(), O_WRONLY | O_CREAT), -1);
  EXPECT_EQ(becomes(path.c_str(), O_RDWR | O_APPEND), -1);
  EXPECT_EQ(becomes(path.c_str(), O_WRONLY | O_APPEND), STDERR_FILENO);
  fcntl(STDERR_FILENO, F_SETFD, FD_CLOEXEC);
  EXPECT_EQ(LogInItsPlace(), -1);
  EXPECT_EQ(becomes("/dev/null", O_RDWR), STDERR_FILENO);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  dup2(ends[1], STDERR_FILENO);
  EXPECT_EQ(LogInItsPlace(), STDERR_FILENO);
  dup2(ends[0], STDERR_FILENO);
  EXPECT_EQ(LogInItsPlace(), -1);
  for (const int end : ends) close(end);
  unlink(path.c_str());
}

// In a child: an end stays noted.
TEST(AwaitRoomTest, WaitsSoOftenAndOnlyAtTheEnd) {
  EXPECT_FALSE(AwaitRoom(EAGAIN));
  const auto count = [] {
    NoteEnd(3);
    NoteEnd(100);  // not the first
    errno = 1234;
    if (AwaitRoom(EBADF) || AwaitRoom(0)) _exit(1);
    int pauses = 0;
    while (AwaitRoom(EAGAIN)) ++pauses;
    _exit(pauses == 3 && errno == 1234 ? 42 : 2);
  };
  EXPECT_EXIT(count(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace hakmem
