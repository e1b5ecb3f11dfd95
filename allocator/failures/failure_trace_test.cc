#include "allocator/failures/failure_trace.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/line_end.h"
#include "allocator/options/option_parser.h"
#include "allocator/process/process.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

FailureEvent EventAt(std::uint64_t monotonic_ns, std::uint64_t sequence) {
  FailureEvent event;
  event.sequence = sequence;
  event.monotonic_ns = monotonic_ns;
  event.process_id = ProcessId();
  event.reason = FailureReason::kExhaustion;
  event.detail = FailureDetail::kHeapLimit;
  return event;
}

TraceMoment Moment() { return {.process_id = ProcessId()}; }

class FailureTraceTest : public testing::Test {
 protected:
  FailureTraceTest() {
    std::string pattern =
        std::filesystem::path(testing::TempDir()) / "trace_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~FailureTraceTest() override { std::filesystem::remove_all(directory_); }

  void Start(const std::string& where,
             std::uint64_t lines_a_second = FailureTrace::kLinesASecond) {
    ASSERT_EQ(ApplyOption("HAKMEM_ACE_TRACE", where, options_),
              OptionError::kNone);
    trace_ = std::make_unique<FailureTrace>(line_);
    trace_->Start(options_, "release", lines_a_second);
  }
  std::string Path(const std::string& name) const { return directory_ / name; }
  static std::vector<std::string> Lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // The lines of one kind of event.
  static std::vector<std::string> Lines(const std::string& path,
                                        const std::string& event) {
    std::vector<std::string> lines = Lines(path);
    std::erase_if(lines, [&](const std::string& line) {
      return line.find("\"event\":\"" + event + "\"") == std::string::npos;
    });
    return lines;
  }
  void Fail(std::uint64_t monotonic_ns) {
    trace_->WriteFailure(EventAt(monotonic_ns, ++sequence_), nullptr);
  }

  ParsedOptions options_;
  TraceLine line_;
  std::unique_ptr<FailureTrace> trace_;
  std::filesystem::path directory_;
  std::uint64_t sequence_ = 0;
};

TEST_F(FailureTraceTest, IsOffUnlessAskedFor) {
  for (const char* off : {"", "0"}) {
    Start(off);
    EXPECT_FALSE(trace_->is_on());
    trace_->Open(Moment());
    Fail(1);
    EXPECT_FALSE(trace_->IsMemoryLineDue(kSecondNs));
    trace_->WriteEnd(Moment(), 1, {});
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(FailureTraceTest, AFileHasAFirstAndALastLine) {
  Start(Path("t"));
  EXPECT_TRUE(trace_->is_on());
  trace_->Open(Moment());
  Fail(1);
  trace_->WriteMemory(Moment(), {});
  trace_->WriteEnd(Moment(), 1, {});
  const auto lines = Lines(Path("t"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[0].find("\"event\":\"start\""), std::string::npos);
  EXPECT_NE(lines[0].find("failure_trace_test"), std::string::npos);
  EXPECT_NE(lines[1].find("\"event\":\"failure\",\"sequence\":1,"),
            std::string::npos);
  EXPECT_NE(lines[2].find("\"event\":\"memory\""), std::string::npos);
  EXPECT_NE(lines[3].find("\"failures\":1,\"dropped\":0"), std::string::npos);
}

// A failure before the constructors have run.
TEST_F(FailureTraceTest, TheFirstFailureOpensTheFile) {
  Start(Path("t"));
  Fail(1);
  Fail(2);
  trace_->Open(Moment());
  const auto lines = Lines(Path("t"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[0].find("\"event\":\"start\""), std::string::npos);
}

TEST_F(FailureTraceTest, StandardErrorIsQuietWithoutFailures) {
  Start("1");
  testing::internal::CaptureStderr();
  trace_->Open(Moment());
  EXPECT_FALSE(trace_->IsMemoryLineDue(kSecondNs));
  trace_->WriteEnd(Moment(), 0, {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  Fail(1);
  trace_->WriteEnd(Moment(), 1, {});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("\"event\":\"start\""), std::string::npos);
  EXPECT_NE(text.find("\"event\":\"failure\""), std::string::npos);
  EXPECT_NE(text.find("\"event\":\"end\""), std::string::npos);
}

TEST_F(FailureTraceTest, WritesToAGivenDescriptor) {
  const int fd = open(Path("t").c_str(), O_CREAT | O_WRONLY, 0600);
  Start("fd:" + std::to_string(fd));
  trace_->Open(Moment());
  Fail(1);
  EXPECT_EQ(Lines(Path("t")).size(), 2u);
  // What takes its place is not ours.
  const int other = open(Path("other").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(dup2(other, fd), fd);
  Fail(2);
  EXPECT_TRUE(Lines(Path("other")).empty());
  EXPECT_EQ(Lines(Path("t")).size(), 2u);
  EXPECT_EQ(trace_->dropped(), 1u);
  close(other);
  close(fd);
}

TEST_F(FailureTraceTest, SaysOnceWhatItCannotOpen) {
  for (const std::string& where :
       {Path("absent/t"), std::string("fd:987"), std::string("fd:"),
        std::string("fd:x"), std::string("fd:99999999999")}) {
    testing::internal::CaptureStderr();
    Start(where);
    trace_->Open(Moment());
    Fail(1);
    Fail(2);
    trace_->WriteEnd(Moment(), 2, {});
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(text.find("hakmem: warning: HAKMEM_ACE_TRACE: "), 0u) << text;
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  }
}

TEST_F(FailureTraceTest, SaysWhyAFileCannotBeOpened) {
  Start(Path("absent/t"));
  testing::internal::CaptureStderr();
  trace_->Open(Moment());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "hakmem: warning: HAKMEM_ACE_TRACE: cannot open " +
                Path("absent/t") +
                ": No such file or directory; failures are not traced" +
                std::string(LineEnd().text()));
}

// A full disk, and a descriptor that is open for reading alone.
TEST_F(FailureTraceTest, SaysOnceThatLinesCannotBeWritten) {
  const int reads = open("/dev/null", O_RDONLY);
  const std::string descriptor = "fd:" + std::to_string(reads);
  const std::pair<std::string, std::string> cases[] = {
      {"/dev/full", "No space left on device"},
      {descriptor, "Bad file descriptor"}};
  for (const auto& [where, words] : cases) {
    testing::internal::CaptureStderr();
    Start(where);
    trace_->Open(Moment());
    Fail(1);
    Fail(2);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "hakmem: warning: HAKMEM_ACE_TRACE: cannot write to " + where +
                  ": " + words + "; lines are missing" +
                  std::string(LineEnd().text()));
    EXPECT_EQ(trace_->dropped(), 2u);
  }
  close(reads);
}

TEST_F(FailureTraceTest, SaysNothingOfAPipeThatIsFullForTheMoment) {
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_NONBLOCK), 0);
  const std::string page(4096, '-');
  while (write(pipe_ends[1], page.data(), page.size()) > 0) {
  }
  testing::internal::CaptureStderr();
  Start("fd:" + std::to_string(pipe_ends[1]));
  trace_->Open(Moment());
  Fail(1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(trace_->dropped(), 1u);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(FailureTraceTest, KeepsARateAndCountsTheRest) {
  Start(Path("t"), 10);
  for (int i = 0; i < 300; ++i) Fail(kSecondNs);
  EXPECT_EQ(Lines(Path("t"), "failure").size(), FailureTrace::kBurstLines);
  EXPECT_EQ(trace_->dropped(), 300 - FailureTrace::kBurstLines);
  // Half a second later there is room for five.
  for (int i = 0; i < 10; ++i) Fail(kSecondNs + kSecondNs / 2);
  const auto lines = Lines(Path("t"), "failure");
  ASSERT_EQ(lines.size(), FailureTrace::kBurstLines + 5);
  EXPECT_EQ(lines[255].find("\"dropped\""), std::string::npos);
  EXPECT_NE(lines[256].find("\"dropped\":44,"), std::string::npos);
  EXPECT_EQ(lines[257].find("\"dropped\""), std::string::npos);
  EXPECT_EQ(trace_->dropped(), 49u);
  // A long rest gives no more than one burst.
  for (int i = 0; i < 1000; ++i) Fail(1000 * kSecondNs);
  EXPECT_EQ(Lines(Path("t"), "failure").size(),
            2 * FailureTrace::kBurstLines + 5);
  trace_->WriteEnd(Moment(), 1310, {});
  EXPECT_NE(Lines(Path("t"), "end")[0].find("\"dropped\":793"),
            std::string::npos);
}

TEST_F(FailureTraceTest, MemoryLinesAreDueOnceASecond) {
  Start(Path("t"));
  EXPECT_TRUE(trace_->IsMemoryLineDue(5 * kSecondNs));
  EXPECT_FALSE(trace_->IsMemoryLineDue(5 * kSecondNs));
  EXPECT_FALSE(trace_->IsMemoryLineDue(6 * kSecondNs - 1));
  EXPECT_TRUE(trace_->IsMemoryLineDue(6 * kSecondNs));
}

// Daemons close all descriptors and open others in their place.
TEST_F(FailureTraceTest, DoesNotWriteIntoFilesOfTheProgram) {
  Start(Path("t"));
  Fail(1);
  for (int fd = 3; fd < 1000; ++fd) close(fd);
  std::vector<int> others;
  for (int i = 0; i < 600; ++i) {
    others.push_back(open(Path("other").c_str(), O_CREAT | O_WRONLY, 0600));
  }
  Fail(2);
  Fail(3);
  for (const int fd : others) close(fd);
  EXPECT_TRUE(Lines(Path("other")).empty());
  EXPECT_EQ(Lines(Path("t"), "failure").size(), 3u);
  EXPECT_EQ(Lines(Path("t"), "start").size(), 1u);
}

// A filter of system calls may hide the process's number.
TEST_F(FailureTraceTest, AProcessWithoutANumberOpensItsFileOnce) {
  Start(Path("t"));
  trace_->WriteEnd({}, 0, {});
  FailureEvent event = EventAt(1, 1);
  event.process_id = 0;
  trace_->WriteFailure(event, nullptr);
  std::filesystem::rename(Path("t"), Path("moved"));
  trace_->WriteFailure(event, nullptr);
  trace_->WriteEnd({}, 2, {});
  EXPECT_FALSE(std::filesystem::exists(Path("t")));
  EXPECT_EQ(Lines(Path("moved"), "start").size(), 1u);
  EXPECT_EQ(Lines(Path("moved"), "failure").size(), 2u);
  EXPECT_EQ(Lines(Path("moved"), "end").size(), 1u);
}

// Nobody reads it.
TEST_F(FailureTraceTest, APipeInPlaceOfTheFileIsNotWaitedFor) {
  Start(Path("t"));
  Fail(1);
  for (int fd = 3; fd < 1000; ++fd) close(fd);
  std::filesystem::remove(Path("t"));
  ASSERT_EQ(mkfifo(Path("t").c_str(), 0600), 0);
  testing::internal::CaptureStderr();
  Fail(2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "No such device or address; failures are not traced"),
            std::string::npos);
  EXPECT_EQ(trace_->dropped(), 1u);
}

// They go to another folder, too.
TEST_F(FailureTraceTest, ARelativePathIsFromWhereTheProcessStarted) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  Start("t");
  std::filesystem::current_path("/");
  Fail(1);
  for (int fd = 3; fd < 1000; ++fd) close(fd);
  Fail(2);
  std::filesystem::current_path(before);
  EXPECT_EQ(Lines(Path("t"), "failure").size(), 2u);
}

TEST_F(FailureTraceTest, AChildWritesToTheSameFileOrToItsOwn) {
  for (const bool own : {false, true}) {
    for (const bool told : {false, true}) {
      const std::string name = std::string(own ? "own" : "same") +
                               (told ? "_told" : "_raw") + (own ? "_%p" : "");
      Start(Path(name));
      Fail(1);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (told) trace_->ChildAfterFork();
        Fail(2);
        trace_->WriteEnd(Moment(), 1, {});
        _exit(0);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
      Fail(3);
      const auto expand = [&](pid_t pid) {
        std::string path = Path(name);
        const std::size_t at = path.find("%p");
        if (at != std::string::npos) path.replace(at, 2, std::to_string(pid));
        return path;
      };
      const std::string mine = expand(getpid());
      const std::string childs = expand(child);
      EXPECT_EQ(mine == childs, !own);
      EXPECT_EQ(Lines(mine, "failure").size(), own ? 2u : 3u) << name;
      EXPECT_EQ(Lines(childs, "failure").size(), own ? 1u : 3u) << name;
      EXPECT_EQ(Lines(childs, "start").size(), 1u) << name;
      EXPECT_EQ(Lines(childs, "end").size(), 1u) << name;
    }
  }
}

// A reader that is slow loses lines, but not their form.
TEST_F(FailureTraceTest, ALineThatWasCutIsEnded) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  ASSERT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
  Start("fd:" + std::to_string(ends[1]));
  // Longer than what a pipe takes whole.
  LimitReport limits;
  const std::string source(sizeof(LimitReading::source) - 1, 'x');
  while (limits.Add("RLIMIT_AS", source.c_str(), ~0UL, ~0UL) >= 0) {
  }
  FailureEvent event = EventAt(0, 1);
  event.frame_count = kMaxFailureFrames;
  for (std::uint64_t& frame : event.frames) frame = ~0UL;
  while (trace_->dropped() == 0) {
    event.monotonic_ns += kSecondNs;
    trace_->WriteFailure(event, &limits);
  }
  std::string text(1 << 20, '\0');
  const auto drain = [&] {
    const ssize_t bytes = read(ends[0], text.data(), text.size());
    return text.substr(0, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  };
  const std::string before = drain();
  EXPECT_NE(before.back(), '\n');
  event.monotonic_ns += kSecondNs;
  trace_->WriteFailure(event, nullptr);
  const std::string after = drain();
  EXPECT_EQ(after.find("\n{\"schema\""), 0u) << after;
  EXPECT_NE(after.find("\"dropped\":1,"), std::string::npos);
  EXPECT_EQ(after.back(), '\n');
  close(ends[0]);
  close(ends[1]);
}

TEST_F(FailureTraceTest, KeepsErrno) {
  Start(Path("absent/t"));
  testing::internal::CaptureStderr();
  errno = 77;
  trace_->Open(Moment());
  Fail(1);
  EXPECT_EQ(errno, 77);
  testing::internal::GetCapturedStderr();
}

FailureTrace* g_trace = nullptr;

// Lines of many threads, and of signal handlers that interrupt them, are whole.
TEST_F(FailureTraceTest, LinesOfThreadsAndSignalHandlersDoNotMix) {
  Start(Path("t"), 1'000'000);
  g_trace = trace_.get();
  struct sigaction action = {};
  action.sa_handler = [](int) {
    g_trace->WriteFailure(EventAt(kSecondNs, 1), nullptr);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  constexpr int kThreads = 3;
  constexpr int kEvents = 2000;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, &running] {
      for (int event = 1; event <= kEvents; ++event) {
        trace_->WriteFailure(EventAt(event * kSecondNs, 1), nullptr);
      }
      --running;
    });
  }
  int signals = 0;
  while (running.load() != 0) {
    for (std::thread& thread : threads) {
      pthread_kill(thread.native_handle(), SIGUSR1);
      ++signals;
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  signal(SIGUSR1, SIG_DFL);
  const auto lines = Lines(Path("t"));
  for (const std::string& line : lines) {
    ASSERT_EQ(line.find("{\"schema\":\"hakmem-failure\""), 0u) << line;
    ASSERT_TRUE(line.ends_with("}")) << line;
    ASSERT_EQ(line.find("{\"schema\"", 1), std::string::npos) << line;
  }
  EXPECT_LE(lines.size() - 1 + trace_->dropped(),
            static_cast<std::size_t>(kThreads * kEvents + signals));
  EXPECT_GE(lines.size() - 1 + trace_->dropped(),
            static_cast<std::size_t>(kThreads * kEvents));
}

}  // namespace
}  // namespace hakmem
