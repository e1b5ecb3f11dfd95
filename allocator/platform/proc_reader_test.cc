#include "allocator/platform/proc_reader.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "allocator/platform/fake_proc_tree.h"
#include "allocator/platform/fake_sandbox.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  FakeProcTree tree;
  tree.Write("/proc/file", text);
  const ProcReader files = tree.files();
  LineReader reader(files, "/proc/file");
  std::vector<std::string> lines;
  std::string_view line;
  while (reader.Next(line)) lines.emplace_back(line);
  EXPECT_EQ(reader.error_number(), 0);
  EXPECT_EQ(reader.bytes_read(), text.size());
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReaderTest, GivesLinesWithoutTheirEnds) {
  EXPECT_EQ(LinesOf(""), Lines());
  EXPECT_EQ(LinesOf("\n"), Lines({""}));
  EXPECT_EQ(LinesOf("a\n\nbc\n"), Lines({"a", "", "bc"}));
}

TEST(LineReaderTest, TheLastLineNeedsNoEnd) {
  EXPECT_EQ(LinesOf("a\nb"), Lines({"a", "b"}));
}

TEST(LineReaderTest, LinesMayCrossTheBuffersEnd) {
  std::string text;
  Lines want;
  for (int i = 0; i < 500; ++i) {
    want.push_back(std::string(static_cast<std::size_t>(i % 97), 'x') +
                   std::to_string(i));
    text += want.back() + "\n";
  }
  EXPECT_EQ(LinesOf(text), want);
}

TEST(LineReaderTest, DropsOnlyWhatIsTooLong) {
  constexpr std::size_t kMax = LineReader::kMaxLineBytes;
  for (const std::size_t length :
       {kMax - 1, kMax, kMax + 1, 2 * kMax, 3 * kMax - 1, 3 * kMax}) {
    const std::string line(length, 'y');
    EXPECT_EQ(LinesOf("before\n" + line + "\nafter\n"),
              Lines({"before", line.substr(0, kMax), "after"}))
        << length;
    EXPECT_EQ(LinesOf(line), Lines({line.substr(0, kMax)})) << length;
  }
}

TEST(LineReaderTest, SaysWhyAFileCannotBeRead) {
  const ProcReader files;
  std::string_view line;
  errno = 1234;
  LineReader missing(files, "/proc/self/no such file");
  EXPECT_FALSE(missing.Next(line));
  EXPECT_EQ(missing.error_number(), ENOENT);
  LineReader folder(files, "/proc");
  EXPECT_FALSE(folder.Next(line));
  EXPECT_EQ(folder.error_number(), EISDIR);
  const std::string name(2 * ProcReader::kMaxPathBytes, 'z');
  LineReader too_long(files, name.c_str());
  EXPECT_FALSE(too_long.Next(line));
  EXPECT_EQ(too_long.error_number(), ENAMETOOLONG);
  EXPECT_EQ(errno, 1234);
}

TEST(LineReaderTest, ReadsTheRealMapsAsTheStreamDoes) {
  const ProcReader files;
  LineReader reader(files, "/proc/self/maps");
  std::string_view line;
  std::size_t count = 0;
  bool stack = false;
  while (reader.Next(line)) {
    ++count;
    stack = stack || line.ends_with("[stack]");
  }
  EXPECT_GT(count, 10u);
  EXPECT_TRUE(stack);
}

TEST(LineReaderTest, AsksTheOtherThreadWhereOneTellsNothing) {
  FakeProcTree tree;
  tree.Write("/proc/self/maps", "");
  tree.Write("/proc/thread-self/maps", "this\n");
  tree.Write("/proc/self/status", "first\n");
  tree.Write("/proc/self/both", "first\n");
  tree.Write("/proc/thread-self/both", "this\n");
  const ProcReader files = tree.files();
  for (const auto& [path, want] :
       {std::pair{"/proc/self/maps", "this"},
        std::pair{"/proc/thread-self/status", "first"},
        std::pair{"/proc/self/both", "first"},
        std::pair{"/proc/thread-self/both", "this"}}) {
    LineReader reader(files, path);
    std::string_view line;
    ASSERT_TRUE(reader.Next(line)) << path;
    EXPECT_EQ(line, want) << path;
    EXPECT_EQ(reader.error_number(), 0) << path;
    EXPECT_FALSE(reader.Next(line)) << path;
  }
}

TEST(LineReaderTest, NeedsOneDescriptor) {
  FakeProcTree tree;
  tree.Write("/proc/self/maps", "");
  tree.Write("/proc/thread-self/maps", "this\n");
  const ProcReader files = tree.files();
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int lowest = dup(STDERR_FILENO);
  ASSERT_EQ(close(lowest), 0);
  const rlimit one_more = {.rlim_cur = static_cast<rlim_t>(lowest) + 1,
                           .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one_more), 0);
  LineReader reader(files, "/proc/self/maps");
  std::string_view line;
  EXPECT_TRUE(reader.Next(line));
  EXPECT_EQ(line, "this");
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(LineReaderTest, ReadsTheMapsWhereTheFirstThreadHasEnded) {
  EXPECT_EXIT(ExitWithoutFirstThread([] {
                const ProcReader files;
                LineReader reader(files, "/proc/self/maps");
                std::string_view line;
                return reader.Next(line) ? 42 : 1;
              }),
              testing::ExitedWithCode(42), "");
}

TEST(ProcReaderTest, ReadsNumbers) {
  FakeProcTree tree;
  const ProcReader files = tree.files();
  std::uint64_t value = 7;
  tree.Write("/n", "65530\n");
  EXPECT_TRUE(files.ReadNumber("/n", value));
  EXPECT_EQ(value, 65530u);
  tree.Write("/n", "max\n");
  EXPECT_TRUE(files.ReadNumber("/n", value));
  EXPECT_EQ(value, kNoLimit);
  for (const char* text : {"", "\n", "-1\n", "12 13\n", "12kB\n"}) {
    tree.Write("/n", text);
    EXPECT_FALSE(files.ReadNumber("/n", value)) << text;
  }
  EXPECT_FALSE(files.ReadNumber("/absent", value));
}

TEST(ProcReaderTest, NotesThatTheKernelHadNoMemory) {
  const ProcReader files;
  std::uint64_t value = 0;
  files.ReadNumber("/no such file", value);
  EXPECT_FALSE(files.memory_refused());
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_openat}, ENOMEM)) _exit(77);
        files.ReadNumber("/proc/sys/vm/max_map_count", value);
        _exit(files.memory_refused() ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_read}, ENOMEM)) _exit(77);
        files.ReadNumber("/proc/sys/vm/max_map_count", value);
        _exit(files.memory_refused() ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST(TakeWordTest, TakesWordsOff) {
  std::string_view text = "  Max address\tspace ";
  EXPECT_EQ(TakeWord(text), "Max");
  EXPECT_EQ(TakeWord(text), "address");
  EXPECT_EQ(TakeWord(text), "space");
  EXPECT_EQ(TakeWord(text), "");
  EXPECT_EQ(TakeWord(text), "");
}

TEST(ParseLimitTest, KnowsTheKernelsWords) {
  std::uint64_t value = 0;
  EXPECT_TRUE(ParseLimit("unlimited", value));
  EXPECT_EQ(value, kNoLimit);
  EXPECT_TRUE(ParseLimit("0", value));
  EXPECT_EQ(value, 0u);
  EXPECT_FALSE(ParseLimit("", value));
  EXPECT_FALSE(ParseLimit("0x10", value));
}

}  // namespace
}  // namespace hakmem
