#include "allocator/process/trace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "allocator/platform/fake_sandbox.h"

namespace hakmem {
namespace {

constexpr std::uint8_t kMagic[] = {'o', 'l', 'd'};

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() { std::remove(path_.c_str()); }

  static int Append(TraceFile& file, const std::string& text) {
    return file.Append(
        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  std::string Content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The descriptor of the file, which the program is not told.
  int Descriptor(int from = 3) const {
    struct stat file;
    EXPECT_EQ(stat(path_.c_str(), &file), 0);
    for (int fd = from; fd < 2048; ++fd) {
      struct stat open_file;
      if (fstat(fd, &open_file) == 0 && open_file.st_ino == file.st_ino) {
        return fd;
      }
    }
    return -1;
  }

  const std::string path_ =
      testing::TempDir() + "/" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TraceFileTest, AppendsToAnEmptiedFile) {
  std::ofstream(path_) << "old trace";
  TraceFile file;
  EXPECT_FALSE(file.is_open());
  errno = 99;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  EXPECT_TRUE(file.is_open());
  EXPECT_EQ(Append(file, "one "), 0);
  EXPECT_EQ(Append(file, "two"), 0);
  EXPECT_EQ(errno, 99);
  EXPECT_EQ(Content(), "one two");
  EXPECT_NE(fcntl(Descriptor(), F_GETFD) & FD_CLOEXEC, 0);
  file.Close();
  EXPECT_FALSE(file.is_open());
  EXPECT_EQ(Descriptor(), -1);
}

TEST_F(TraceFileTest, WhatIsNoTraceIsKept) {
  for (const char* content : {"another file", "ol"}) {
    std::ofstream(path_) << content;
    TraceFile file;
    EXPECT_EQ(file.Open(path_.c_str(), kMagic), EEXIST);
    EXPECT_FALSE(file.is_open());
    EXPECT_EQ(Content(), content);
  }
}

TEST_F(TraceFileTest, TheFileIsTheOwnersAlone) {
  TraceFile file;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  file.Close();
}

TEST_F(TraceFileTest, FollowsNoSymbolicLink) {
  const std::string target = path_ + ".target";
  std::ofstream(target) << "old trace";
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  TraceFile file;
  EXPECT_EQ(file.Open(path_.c_str(), kMagic), ELOOP);
  EXPECT_EQ(Content(), "old trace");
  std::remove(target.c_str());
}

TEST_F(TraceFileTest, SaysWhyNot) {
  TraceFile file;
  EXPECT_EQ(file.Open("/nowhere/at/all", kMagic), ENOENT);
  EXPECT_EQ(file.Open("/", kMagic), EISDIR);
  EXPECT_FALSE(file.is_open());
  // Not /dev/full: its lock is every process's.
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit nothing = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &nothing), 0);
  EXPECT_EQ(Append(file, "text"), EFBIG);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
}

TEST_F(TraceFileTest, OneWriterAtATime) {
  TraceFile first;
  TraceFile second;
  ASSERT_EQ(first.Open(path_.c_str(), kMagic), 0);
  EXPECT_EQ(Append(first, "old one"), 0);
  EXPECT_EQ(second.Open(path_.c_str(), kMagic), EWOULDBLOCK);
  EXPECT_EQ(Content(), "old one");
  first.Close();
  EXPECT_EQ(second.Open(path_.c_str(), kMagic), 0);
  EXPECT_EQ(Content(), "");
}

TEST_F(TraceFileTest, KeepsOutOfTheWayOfLowNumbers) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur <= 500) GTEST_SKIP() << "no high descriptors here";
  TraceFile file;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  EXPECT_GE(Descriptor(), 500);
}

TEST_F(TraceFileTest, IsOpenedAgainWhenTheProgramHasClosedIt) {
  TraceFile file;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  EXPECT_EQ(Append(file, "one "), 0);
  ASSERT_EQ(close(Descriptor()), 0);
  EXPECT_EQ(Append(file, "two"), 0);
  EXPECT_EQ(Content(), "one two");
}

TEST_F(TraceFileTest, IsOpenedAgainWhereTheFirstThreadHasEnded) {
  const auto reopens = [this] {
    TraceFile file;
    if (file.Open(path_.c_str(), kMagic) != 0) return 1;
    return close(Descriptor()) == 0 && Append(file, "text") == 0 ? 42 : 2;
  };
  EXPECT_EXIT(ExitWithoutFirstThread(reopens), testing::ExitedWithCode(42), "");
}

TEST_F(TraceFileTest, NeverWritesToAFileOfTheProgram) {
  TraceFile file;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  const int fd = Descriptor();
  std::FILE* const other = std::tmpfile();
  ASSERT_EQ(dup2(fileno(other), fd), fd);
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  EXPECT_EQ(Append(file, "text"), EBADF);
  EXPECT_FALSE(file.is_open());
  // Neither to another file of the same name.
  EXPECT_EQ(lseek(fd, 0, SEEK_END), 0);
  close(fd);
  std::fclose(other);
}

// Nobody reads it.
TEST_F(TraceFileTest, APipeInPlaceOfTheFileIsNotWaitedFor) {
  TraceFile file;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  ASSERT_EQ(close(Descriptor()), 0);
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Append(file, "text"), EBADF);
  EXPECT_FALSE(file.is_open());
}

TEST_F(TraceFileTest, APipeIsOpenedAgainForWritesThatWait) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  TraceFile file;
  ASSERT_EQ(file.Open(path_.c_str(), kMagic), 0);
  // The reader has the lower number.
  ASSERT_EQ(close(Descriptor(reader + 1)), 0);
  EXPECT_EQ(Append(file, "text"), 0);
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 4);
  EXPECT_EQ(fcntl(Descriptor(reader + 1), F_GETFL) & O_NONBLOCK, 0);
  close(reader);
  file.Close();
}

}  // namespace
}  // namespace hakmem
