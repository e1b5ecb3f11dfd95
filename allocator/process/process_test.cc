#include "allocator/process/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/base/line_end.h"
#include "allocator/base/system_call.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr int kErrno = 1234;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Process, WritesAllThroughShortWrites) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // Far more than a pipe holds.
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i) + ' ';
  std::string received;
  std::thread reader([&] {
    char buffer[4096];
    for (;;) {
      const ssize_t got = read(ends[0], buffer, sizeof(buffer));
      if (got <= 0) return;
      received.append(buffer, static_cast<std::size_t>(got));
    }
  });
  errno = kErrno;
  WriteFd(ends[1], text);
  EXPECT_EQ(errno, kErrno);
  CloseFd(ends[1]);
  EXPECT_EQ(errno, kErrno);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(received, text);
}

// A pipe whose writers do not wait, without room.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(pipe2(ends_, O_NONBLOCK | O_CLOEXEC), 0);
    const std::string page(4096, '-');
    while (write(ends_[1], page.data(), page.size()) > 0) {
    }
  }
  ~FullPipe() { CloseFd(ends_[0]); }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  // What a child that does `work` writes behind what is there. Nothing is read
  // before the child waits.
  std::string FromChild(const std::function<void(int fd)>& work) {
    const pid_t child = fork();
    if (child == 0) {
      NoteEnd(std::numeric_limits<int>::max());
      work(ends_[1]);
      _exit(0);
    }
    CloseFd(ends_[1]);
    AwaitThat([child] {
      return SleepsIn(child, SYS_futex) || StateOf(child) == 'Z';
    });
    fcntl(ends_[0], F_SETFL, 0);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  }
  int in() const { return ends_[1]; }

 private:
  int ends_[2];
};

TEST(Process, OneThatGoesOnDoesNotWaitForRoom) {
  const FullPipe full;
  EXPECT_EQ(TryWriteFd(full.in(), "text"), EAGAIN);
  CloseFd(full.in());
}

TEST(Process, OneThatEndsWaitsForRoom) {
  // Several pipes long.
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i) + ' ';
  FullPipe full;
  EXPECT_EQ(full.FromChild([&](int fd) { WriteFd(fd, text); }), text);
}

TEST(Process, AFailedCheckWaitsForRoom) {
  FullPipe full;
  const std::string said = full.FromChild([](int fd) {
    dup2(fd, STDERR_FILENO);
    CheckFailed("expression", 1, 2, "file", 3);
  });
  EXPECT_NE(said.find("internal check failed: expression"), std::string::npos);
}

TEST(Process, WritingGivesUpSilently) {
  errno = kErrno;
  WriteFd(-1, "text");
  WriteFd(StandardError(), "");
  EXPECT_EQ(errno, kErrno);
}

volatile sig_atomic_t g_pipe_signals = 0;

// The default action would end this test.
TEST(Process, WritingWhereNobodyReadsRaisesNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const auto before =
      signal(SIGPIPE, [](int) { g_pipe_signals = g_pipe_signals + 1; });
  errno = kErrno;
  EXPECT_EQ(TryWriteFd(ends[1], "text"), EPIPE);
  WriteFd(ends[1], "text");
  EXPECT_EQ(errno, kErrno);
  EXPECT_EQ(g_pipe_signals, 0);
  // One that the program holds back and has not taken yet stays its own.
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &pipe_only, &mask);
  for (const bool raised : {false, true}) {
    if (raised) raise(SIGPIPE);
    EXPECT_EQ(TryWriteFd(ends[1], "text"), EPIPE);
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), raised ? 1 : 0);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  EXPECT_EQ(g_pipe_signals, 1);
  signal(SIGPIPE, before);
  close(ends[1]);
}

TEST(Process, OpensForAppending) {
  const std::string path = testing::TempDir() + "/process_test_append";
  unlink(path.c_str());
  const mode_t mask = umask(0);
  for (const char* text : {"one ", "two "}) {
    int error = -1;
    errno = kErrno;
    const int fd = OpenForAppend(path.c_str(), FileReaders::kAll, error);
    EXPECT_EQ(errno, kErrno);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(error, 0);
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    WriteFd(fd, text);
    CloseFd(fd);
    EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  }
  umask(mask);
  EXPECT_EQ(ReadFile(path), "one two ");
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0644u);
}

TEST(Process, ReportsWhyOpeningFailed) {
  int error = 0;
  errno = kErrno;
  EXPECT_EQ(OpenForAppend("/no/such/directory/file", FileReaders::kAll, error),
            -1);
  EXPECT_EQ(error, ENOENT);
  EXPECT_EQ(errno, kErrno);
  EXPECT_STREQ(ErrorWords(ENOENT), "No such file or directory");
  EXPECT_STREQ(ErrorWords(12345), "unknown error");
}

TEST(Process, FilesWithAddressesAreTheOwners) {
  const std::string path = testing::TempDir() + "/addresses";
  int error = 0;
  const int fd = OpenForAppend(path.c_str(), FileReaders::kOwner, error);
  ASSERT_GE(fd, 0);
  struct stat status;
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  CloseFd(fd);
}

TEST(Process, FollowsNoSymbolicLink) {
  const std::string target = testing::TempDir() + "/target";
  const std::string link = testing::TempDir() + "/link";
  unlink(link.c_str());
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  int error = 0;
  EXPECT_EQ(OpenForAppend(link.c_str(), FileReaders::kAll, error), -1);
  EXPECT_EQ(error, ELOOP);
  EXPECT_STREQ(ErrorWords(error), "it is a symbolic link");
  EXPECT_EQ(access(target.c_str(), F_OK), -1);
}

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables Visit(std::string_view prefix) {
  Variables variables;
  errno = kErrno;
  VisitEnvironment(
      prefix,
      [](void* context, std::string_view name, const char* value) {
        static_cast<Variables*>(context)->emplace_back(name, value);
      },
      &variables);
  EXPECT_EQ(errno, kErrno);
  std::sort(variables.begin(), variables.end());
  return variables;
}

TEST(Process, VisitsTheEnvironmentByPrefix) {
  EXPECT_EQ(Visit("PROCESSTEST_"), Variables());
  setenv("PROCESSTEST_A", "1", 1);
  setenv("PROCESSTEST_B", "", 1);
  setenv("PROCESSTEST_C", "x=y", 1);
  setenv("PROCESSTES", "no", 1);
  setenv("A_PROCESSTEST_", "no", 1);
  EXPECT_EQ(Visit("PROCESSTEST_"), (Variables{{"PROCESSTEST_A", "1"},
                                              {"PROCESSTEST_B", ""},
                                              {"PROCESSTEST_C", "x=y"}}));
}

TEST(Process, VisitsOddEnvironments) {
  char no_value[] = "PROCESSTEST_";
  char good[] = "PROCESSTEST_G=1";
  char* odd[] = {no_value, good, nullptr};
  char** const saved = std::exchange(environ, odd);
  const Variables found = Visit("PROCESSTEST_");
  environ = nullptr;
  const Variables none = Visit("PROCESSTEST_");
  environ = saved;
  EXPECT_EQ(found, (Variables{{"PROCESSTEST_G", "1"}}));
  EXPECT_EQ(none, Variables());
}

TEST(Process, KnowsItsIds) {
  EXPECT_EQ(ProcessId(), getpid());
  EXPECT_EQ(ThreadId(), gettid());
  int other = 0;
  std::thread thread([&other] { other = ThreadId(); });
  thread.join();
  EXPECT_NE(other, 0);
  EXPECT_NE(other, ThreadId());
}

TEST(Process, ItsNameIsTheFileThatWasStarted) {
  EXPECT_STREQ(ProgramName(), program_invocation_short_name);
  // As servers do that tell in it what they do.
  const std::string name = ProgramName();
  const char first = name[0];
  program_invocation_short_name[0] = '!';
  EXPECT_EQ(ProgramName(), name);
  program_invocation_short_name[0] = first;
}

TEST(Process, AWarningEndsWithTheProcess) {
  testing::internal::CaptureStderr();
  RawPrinter line;
  WriteWarning(line.Text("one"));
  WriteWarning("two");
  const std::string end(LineEnd().text());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "one" + end + "two" + end);
}

void HandlerThatReturns(int) {}

void BlockAbort() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

TEST(ProcessDeathTest, AbortsWhateverTheProgramDidToTheSignal) {
  const auto aborted = testing::KilledBySignal(SIGABRT);
  EXPECT_EXIT(AbortProcess(), aborted, "");
  EXPECT_EXIT((signal(SIGABRT, SIG_IGN), AbortProcess()), aborted, "");
  EXPECT_EXIT((signal(SIGABRT, HandlerThatReturns), AbortProcess()), aborted,
              "");
  EXPECT_EXIT((BlockAbort(), AbortProcess()), aborted, "");
  EXPECT_EXIT(
      {
        std::thread thread([] { AbortProcess(); });
        thread.join();
      },
      aborted, "");
}

// There the kernel would end the thread alone.
TEST(ProcessDeathTest, AbortsInStrictModeByATrap) {
  EXPECT_EXIT((t_is_strict = true, AbortProcess()),
              testing::KilledBySignal(HAK_TRAP_SIGNAL), "");
}

// Process 1 of a namespace is not killed by its own signals.
TEST(ProcessTest, EndsTheFirstProcessOfANamespace) {
  const pid_t outer = fork();
  ASSERT_GE(outer, 0);
  if (outer == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(0);
    const pid_t first = fork();
    if (first < 0) _exit(0);
    if (first == 0) AbortProcess();
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(outer, &status, 0), outer);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 0) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGABRT);
}

TEST(Process, WhatTheKernelRefusesToTellIsNoNumber) {
  t_is_strict = true;
  EXPECT_GE(ThreadId(), 0);
  t_is_strict = false;
}

TEST(Process, ThreadsHaveNames) {
  char name[16] = {};
  std::thread([&name] {
    pthread_setname_np(pthread_self(), "fifteen letters");
    ThreadName(name);
  }).join();
  EXPECT_STREQ(name, "fifteen letters");
}

}  // namespace
}  // namespace hakmem
