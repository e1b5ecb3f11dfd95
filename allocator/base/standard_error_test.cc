#include "allocator/base/standard_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

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
}

TEST_F(StandardErrorTest, IsNoneWhereThereWasNone) {
  close(STDERR_FILENO);
  NoteStandardError();
  EXPECT_EQ(StandardError(), -1);
  Replace();
  EXPECT_EQ(StandardError(), -1);
  dup2(kept_, STDERR_FILENO);
  EXPECT_EQ(StandardError(), -1);
}

}  // namespace
}  // namespace hakmem
