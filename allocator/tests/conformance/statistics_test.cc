// HAKMEM_STATS: when statistics are written, and where to.

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <utility>

#include "allocator/process/test_waits.h"
#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(Statistics, DISABLED_Succeeds) { free(malloc(100)); }

TEST(Statistics, GoToStderrAtExit) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild({.test = "Statistics.DISABLED_Succeeds",
                                      .environment = {"HAKMEM_STATS=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  const std::string line = FirstLineWith(child.output, "\"pid\"");
  EXPECT_TRUE(std::regex_search(
      line, std::regex("^\\{\"pid\": ?[0-9]+, ?\"program\": ?\"")))
      << child.output;
  EXPECT_TRUE(std::regex_search(
      line, std::regex(",\"classes\":\\[\\{\"block_bytes\":[0-9]+,\"slabs\":"
                       "[1-9].*\\}\\]\\}$")))
      << line;
}

TEST(Statistics, CountWhatExitHandlersDo) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Process.DISABLED_AllocatesAtExit",
                .environment = {"HAKMEM_STATS=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  const std::size_t last_handler = child.output.find("destructor ran");
  const std::size_t statistics = child.output.find("{\"pid\"");
  ASSERT_NE(last_handler, std::string::npos) << child.output;
  ASSERT_NE(statistics, std::string::npos) << child.output;
  EXPECT_LT(last_handler, statistics);
}

TEST(Statistics, ComeFromWhicheverThreadExits) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Process.DISABLED_ExitsFromAnotherThread",
                .environment = {"HAKMEM_STATS=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  const std::string line = FirstLineWith(child.output, "{\"pid\"");
  ASSERT_FALSE(line.empty()) << child.output;
  EXPECT_EQ(line.back(), '}');
}

TEST(Statistics, DISABLED_ClosesStandardError) {
  // The profile has something to say.
  for (int i = 0; i < 100; ++i) Opaque(malloc(kTestMiB));
  ASSERT_EQ(close(STDERR_FILENO), 0);
}

// Standard error's number is free for the file of another option.
TEST(Statistics, GoToNoFileOfAnotherOption) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path =
      testing::TempDir() + "/hakmem_exit_" + std::to_string(getpid());
  const ChildResult child =
      RunChild({.test = "Statistics.DISABLED_ClosesStandardError",
                .environment = {"HAKMEM_STATS=1", "HAKMEM_LEAKS=" + path,
                                "HAKMEM_HEAP_PROFILE=" + path}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_NE(child.output.find("{\"pid\""), std::string::npos) << child.output;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    EXPECT_FALSE(line.starts_with("{\"pid\"")) << line;
  }
  unlink(path.c_str());
}

// Most of the time somebody holds a lock.
std::atomic<int> g_allocations{0};
void AllocateForEver() {
  for (;; ++g_allocations) free(Opaque(malloc(Opaque(8 * kTestMiB))));
}

TEST(Statistics, DISABLED_IsEndedWhileItAllocates) {
  std::thread(AllocateForEver).detach();
  std::thread([] {
    AwaitThat([] { return g_allocations > getpid() % 500; });
    kill(getpid(), SIGTERM);
  }).detach();
  AllocateForEver();
}

TEST(Statistics, AreToldAtASignalThatEndsTheProcess) {
  HAKMEM_ONLY_ON_HAKMEM();
  for (int run = 0; run < 10; ++run) {
    const ChildResult child = RunChild(
        {.test = "Statistics.DISABLED_IsEndedWhileItAllocates",
         .environment = {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"}});
    ASSERT_TRUE(WIFSIGNALED(child.wait_status)) << child.output;
    EXPECT_EQ(WTERMSIG(child.wait_status), SIGTERM) << child.output;
    const std::string line = FirstLineWith(child.output, "{\"pid\"");
    EXPECT_NE(line.find(",\"signal\":15,"), std::string::npos) << child.output;
    EXPECT_NE(line.find(",\"time\":1"), std::string::npos) << line;
  }
}

// As Rust's runtime has it: handlers of signals run on 8 KiB, or on 16 where
// the registers that are kept there take half of that (arm64).
TEST(Statistics, DISABLED_IsEndedOnAShortStack) {
  constexpr std::size_t kBytes = sizeof(ucontext_t) > 4096 ? 16384 : 8192;
  const std::size_t page = static_cast<std::size_t>(getpagesize());
  char* const mapped =
      static_cast<char*>(mmap(nullptr, page + kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_EQ(mprotect(mapped, page, PROT_NONE), 0);
  const stack_t stack = {
      .ss_sp = mapped + page, .ss_flags = 0, .ss_size = kBytes};
  if (sigaltstack(&stack, nullptr) != 0) GTEST_SKIP() << "too short here";
  raise(SIGTERM);
}

TEST(Statistics, AreToldOnAShortStack) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path =
      testing::TempDir() + "/hakmem_short_" + std::to_string(getpid());
  for (const std::string& to : {path, std::string("/no/such/folder/file")}) {
    const ChildResult child = RunChild(
        {.test = "Statistics.DISABLED_IsEndedOnAShortStack",
         .environment = {"HAKMEM_STATS=" + to, "HAKMEM_STATS_AT_SIGNALS=1",
                         "HAKMEM_PROFILE_BYTES=64K",
                         "HAKMEM_HEAP_PROFILE=" + to}});
    unlink(path.c_str());
    ASSERT_TRUE(WIFSIGNALED(child.wait_status)) << child.output;
    EXPECT_EQ(WTERMSIG(child.wait_status), SIGTERM) << to << child.output;
  }
}

TEST(Statistics, DISABLED_HandlesASignal) {
  signal(SIGTERM, [](int) { _exit(0); });
  raise(SIGTERM);
}

TEST(Statistics, DISABLED_FindsNoHandler) {
  struct sigaction action = {};
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    ASSERT_EQ(sigaction(number, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << number;
  }
}

TEST(Statistics, OnlyBothTogetherSetUpHandlers) {
  HAKMEM_ONLY_ON_HAKMEM();
  for (const char* const option :
       {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"}) {
    const ChildResult child =
        RunChild({.test = "Statistics.DISABLED_FindsNoHandler",
                  .environment = {option},
                  // nohup and shells have programs ignore some of them.
                  .before_exec = [] {
                    signal(SIGHUP, SIG_DFL);
                    signal(SIGINT, SIG_DFL);
                    signal(SIGTERM, SIG_DFL);
                  }});
    EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  }
}

TEST(Statistics, DISABLED_IgnoresASignal) { raise(SIGINT); }

TEST(Statistics, ASignalThatEndsNothingTellsNoStatistics) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult handled = RunChild(
      {.test = "Statistics.DISABLED_HandlesASignal",
       .environment = {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"}});
  EXPECT_TRUE(ExitedWithZero(handled.wait_status)) << handled.output;
  EXPECT_EQ(handled.output.find("{\"pid\""), std::string::npos);
  const ChildResult ignored =
      RunChild({.test = "Statistics.DISABLED_IgnoresASignal",
                .environment = {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"},
                .before_exec = [] { signal(SIGINT, SIG_IGN); }});
  EXPECT_TRUE(ExitedWithZero(ignored.wait_status)) << ignored.output;
  const std::string line = FirstLineWith(ignored.output, "{\"pid\"");
  EXPECT_FALSE(line.empty()) << ignored.output;
  EXPECT_EQ(line.find("\"signal\""), std::string::npos) << line;
}

TEST(Statistics, AreAppendedToAFile) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path =
      testing::TempDir() + "/hakmem_stats_" + std::to_string(getpid());
  for (int run = 0; run < 2; ++run) {
    const ChildResult child =
        RunChild({.test = "Statistics.DISABLED_Succeeds",
                  .environment = {"HAKMEM_STATS=" + path}});
    EXPECT_TRUE(ExitedWithZero(child.wait_status));
  }
  std::ifstream file(path);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    ++lines;
    EXPECT_EQ(line.find("{\"pid\""), 0U) << line;
  }
  EXPECT_EQ(lines, 2);
  unlink(path.c_str());
}

TEST(Statistics, OfEachProcessCanHaveAFileOfItsOwn) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string folder =
      testing::TempDir() + "/hakmem_stats_" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const ChildResult child =
      RunChild({.test = "Statistics.DISABLED_Succeeds",
                .environment = {"HAKMEM_STATS=" + folder + "/%p.json"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line.find("{\"pid\":" + entry.path().stem().string() + ","), 0U)
        << line;
    ++files;
  }
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(folder);
}

TEST(Statistics, DISABLED_GoesElsewhere) {
  free(malloc(100));
  // As a daemon.
  ASSERT_EQ(chdir("/"), 0);
}

TEST(Statistics, StayWhereTheProgramWasStarted) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string folder =
      testing::TempDir() + "/hakmem_here_" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const ChildResult child =
      RunChild({.test = "Statistics.DISABLED_GoesElsewhere",
                .environment = {"HAKMEM_STATS=here.json"},
                .before_exec = [&folder] {
                  if (chdir(folder.c_str()) != 0) _exit(1);
                }});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  std::ifstream file(folder + "/here.json");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line.find("{\"pid\""), 0U) << line << child.output;
  std::filesystem::remove_all(folder);
}

TEST(Statistics, FollowNoSymbolicLink) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string target =
      testing::TempDir() + "/hakmem_target_" + std::to_string(getpid());
  const std::string link = target + ".link";
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  const ChildResult child = RunChild({.test = "Statistics.DISABLED_Succeeds",
                                      .environment = {"HAKMEM_STATS=" + link}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_TRUE(ToldWithProcess(child, link + ": it is a symbolic link"))
      << child.output;
  EXPECT_EQ(access(target.c_str(), F_OK), -1);
  unlink(link.c_str());
}

TEST(Statistics, DISABLED_ClosesItsOutputs) {
  std::atexit([] {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
  });
}

TEST(Statistics, ArriveWhenTheProgramHasClosedStderr) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Statistics.DISABLED_ClosesItsOutputs",
                .environment = {"HAKMEM_STATS=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find("{\"pid\""), std::string::npos) << child.output;
}

TEST(Statistics, FileThatCannotBeOpenedOrWrittenIsReported) {
  HAKMEM_ONLY_ON_HAKMEM();
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  for (const auto& [path, words] :
       {std::pair<std::string, std::string>{
            "/no/such/folder/file",
            "cannot open /no/such/folder/file: No such file or directory"},
        {"/dev/full", "cannot write to /dev/full: No space left on device"}}) {
    const ChildResult child =
        RunChild({.test = "Statistics.DISABLED_Succeeds",
                  .environment = {"HAKMEM_STATS=" + path}});
    EXPECT_TRUE(ExitedWithZero(child.wait_status));
    EXPECT_TRUE(
        ToldWithProcess(child, "hakmem: warning: HAKMEM_STATS: " + words))
        << child.output;
  }
}

}  // namespace
}  // namespace hakmem
