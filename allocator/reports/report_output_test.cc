#include "allocator/reports/report_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "allocator/base/line_end.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string End() { return std::string(LineEnd().text()); }

class ReportOutputTest : public testing::Test {
 protected:
  ReportOutputTest() {
    char name[] = "/tmp/hakmem_report_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/" + std::to_string(getpid()) + ".txt";
  }
  ~ReportOutputTest() override {
    SetReportOutput("1");
    EXPECT_EQ(chdir("/"), 0);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  // What was written to standard error.
  static std::string Write(const char* text) {
    testing::internal::CaptureStderr();
    WriteReport(text);
    return testing::internal::GetCapturedStderr();
  }
  std::string Content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
  std::string path_;
};

TEST_F(ReportOutputTest, GoesToStandardError) {
  for (const char* value : {"", "1"}) {
    SetReportOutput(value);
    EXPECT_EQ(Write("report\n"), "report\n");
  }
}

TEST_F(ReportOutputTest, IsAppendedToAFileOfTheProcess) {
  const std::string value = folder_ + "/%p.txt";
  SetReportOutput(value.c_str());
  errno = 99;
  EXPECT_EQ(Write("one\n"), "");
  EXPECT_EQ(Write("two\n"), "");
  EXPECT_EQ(errno, 99);
  EXPECT_EQ(Content(), "one\ntwo\n");
  struct stat facts = {};
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(ReportOutputTest, PathIsFromWhereTheProcessStarted) {
  ASSERT_EQ(chdir(folder_.c_str()), 0);
  SetReportOutput("%p.txt");
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_EQ(Write("report\n"), "");
  EXPECT_EQ(Content(), "report\n");
}

TEST_F(ReportOutputTest, WhatCannotBeWrittenGoesToStandardError) {
  SetReportOutput("/no/such/folder/file");
  EXPECT_EQ(Write("report\n"),
            "hakmem: warning: HAKMEM_REPORT: cannot write to "
            "/no/such/folder/file: No such file or directory" +
                End() + "report\n");
  ASSERT_EQ(symlink("/dev/null", path_.c_str()), 0);
  SetReportOutput(path_.c_str());
  EXPECT_EQ(Write("report\n"),
            "hakmem: warning: HAKMEM_REPORT: cannot write to " + path_ +
                ": it is a symbolic link" + End() + "report\n");
  // A file that cannot get longer.
  SetReportOutput("/dev/full");
  EXPECT_EQ(Write("report\n"),
            "hakmem: warning: HAKMEM_REPORT: cannot write to /dev/full: No "
            "space left on device" +
                End() + "report\n");
}

TEST_F(ReportOutputTest, APipeIsNotWaitedForUntilSomebodyReads) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  SetReportOutput(path_.c_str());
  EXPECT_EQ(Write("report\n"),
            "hakmem: warning: HAKMEM_REPORT: cannot write to " + path_ +
                ": No such device or address" + End() + "report\n");
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(Write("report\n"), "");
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "report\n");
  close(reader);
}

}  // namespace
}  // namespace hakmem
