// What the environment makes a process print, and limits it sets.

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string FirstLineWith(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

TEST(Options, DISABLED_Succeeds) { free(malloc(100)); }

TEST(Options, ShowConfigPrintsVariantVersionAndOptions) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_SHOW_CONFIG=1", "HAKMEM_DECAY_MS=77"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find(Hakmem().variant()), std::string::npos);
  EXPECT_NE(child.output.find(Hakmem().version()), std::string::npos);
  EXPECT_TRUE(std::regex_search(FirstLineWith(child.output, "HAKMEM_DECAY_MS"),
                                std::regex("77.*environment")))
      << child.output;
  EXPECT_TRUE(std::regex_search(FirstLineWith(child.output, "HAKMEM_MAX_ALLOC"),
                                std::regex("default")))
      << child.output;
}

// Reads what it has freed: memory that rests, and that nobody else has.
TEST(Options, DISABLED_LooksAtAFreedBlock) {
  for (const std::size_t size : {1000U, 8000U, 60'000U}) {
    char* const block = static_cast<char*>(malloc(size));
    ASSERT_NE(block, nullptr);
    std::memset(block, 'x', size);
    free(block);
    const volatile char* const freed = block;
    EXPECT_EQ(freed[0], 0);
    EXPECT_EQ(freed[255], 0);
    EXPECT_EQ(freed[size - 1], 'x');
    char* const zeroed = static_cast<char*>(calloc(1, size));
    ASSERT_NE(zeroed, nullptr);
    for (std::size_t at = 0; at < size; ++at) ASSERT_EQ(zeroed[at], 0) << at;
    free(zeroed);
  }
}

TEST(Options, ClearBoundsWhatIsCleared) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string variant = Hakmem().variant();
  const ChildResult child =
      RunChild({.test = variant == "hardened" || variant == "debug"
                            ? "Options.DISABLED_LooksAtAFreedBlock"
                            : "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_CLEAR=256", "HAKMEM_GUARD_SAMPLE=0"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST(Options, HardenedNamesWhatWeakensIt) {
  HAKMEM_ONLY_ON_HAKMEM();
  constexpr char kWeakened[] = "hakmem: warning: weakened by HAKMEM_CLEAR=300 ";
  const bool hardened = std::string(Hakmem().variant()) == "hardened";
  const ChildResult told = RunChild({.test = "Options.DISABLED_Succeeds",
                                     .environment = {"HAKMEM_CLEAR=300"}});
  EXPECT_TRUE(ExitedWithZero(told.wait_status)) << told.output;
  EXPECT_EQ(told.output.find(kWeakened) != std::string::npos, hardened)
      << told.output;
  const ChildResult silent =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_CLEAR=300", "HAKMEM_WARN_WEAKENED=0"}});
  EXPECT_EQ(silent.output.find("weakened"), std::string::npos) << silent.output;
}

TEST(Options, HardenedGuardsASampleUnlessItIsToldNotTo) {
  HAKMEM_ONLY_ON_HAKMEM();
  const bool hardened = std::string(Hakmem().variant()) == "hardened";
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_SHOW_CONFIG=1"},
                .before_exec = [] { unsetenv("HAKMEM_GUARD_SAMPLE"); }});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(FirstLineWith(child.output, "HAKMEM_GUARD_SAMPLE="),
            std::string("  HAKMEM_GUARD_SAMPLE=") +
                (hardened ? "100000" : "0") + " allocations (default)")
      << child.output;
  const ChildResult told =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_GUARD_SAMPLE=often"}});
  EXPECT_NE(told.output.find(hardened ? "; using 100000\n" : "; using 0\n"),
            std::string::npos)
      << told.output;
}

TEST(Options, DISABLED_MallocsWithoutMapping) {
  hakmem_statistics before = {};
  Hakmem().get_statistics(&before, sizeof(before));
  EXPECT_GE(before.pool.allocations, 500U);
  for (int i = 0; i < 500; ++i) EXPECT_NE(malloc(40'000), nullptr);
  hakmem_statistics after = {};
  Hakmem().get_statistics(&after, sizeof(after));
  // Where each is sampled, the profile may grow once.
  const char* const bytes = getenv("HAKMEM_PROFILE_BYTES");
  const bool sampled = bytes != nullptr && std::strcmp(bytes, "1") == 0;
  EXPECT_LE(after.map_calls, before.map_calls + (sampled ? 1 : 0));
}

TEST(Options, PrewarmHasBlocksReadyBeforeTheProgramStarts) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_MallocsWithoutMapping",
                .environment = {"HAKMEM_PREWARM=100:10,40000:500"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST(Options, UnknownOnesAreReportedOnce) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild({.test = "Options.DISABLED_Succeeds",
                                      .environment = {"HAKMEM_NONSENSE=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  const std::size_t first = child.output.find("HAKMEM_NONSENSE");
  ASSERT_NE(first, std::string::npos) << child.output;
  EXPECT_EQ(child.output.find("HAKMEM_NONSENSE", first + 1), std::string::npos);
}

TEST(Options, StatisticsGoToStderrAtExit) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild(
      {.test = "Options.DISABLED_Succeeds", .environment = {"HAKMEM_STATS=1"}});
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

TEST(Options, StatisticsCountWhatExitHandlersDo) {
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

TEST(Options, StatisticsComeFromWhicheverThreadExits) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Process.DISABLED_ExitsFromAnotherThread",
                .environment = {"HAKMEM_STATS=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  const std::string line = FirstLineWith(child.output, "{\"pid\"");
  ASSERT_FALSE(line.empty()) << child.output;
  EXPECT_EQ(line.back(), '}');
}

// Most of the time somebody holds a lock.
void AllocateForEver() {
  while (true) free(Opaque(malloc(Opaque(8 * kTestMiB))));
}

TEST(Options, DISABLED_IsEndedWhileItAllocates) {
  std::thread(AllocateForEver).detach();
  std::thread([] {
    usleep(static_cast<useconds_t>(getpid()) % 5000);
    kill(getpid(), SIGTERM);
  }).detach();
  AllocateForEver();
}

TEST(Options, StatisticsAreToldAtASignalThatEndsTheProcess) {
  HAKMEM_ONLY_ON_HAKMEM();
  for (int run = 0; run < 10; ++run) {
    const ChildResult child = RunChild(
        {.test = "Options.DISABLED_IsEndedWhileItAllocates",
         .environment = {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"}});
    ASSERT_TRUE(WIFSIGNALED(child.wait_status)) << child.output;
    EXPECT_EQ(WTERMSIG(child.wait_status), SIGTERM) << child.output;
    const std::string line = FirstLineWith(child.output, "{\"pid\"");
    EXPECT_NE(line.find(",\"signal\":15,"), std::string::npos) << child.output;
    EXPECT_NE(line.find(",\"time\":1"), std::string::npos) << line;
  }
}

// As Rust's runtime has it: handlers of signals run on 8 KiB.
TEST(Options, DISABLED_IsEndedOnAShortStack) {
  constexpr std::size_t kBytes = 8192;
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

TEST(Options, StatisticsAreToldOnAShortStack) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path =
      testing::TempDir() + "/hakmem_short_" + std::to_string(getpid());
  for (const std::string& to : {path, std::string("/no/such/folder/file")}) {
    const ChildResult child = RunChild(
        {.test = "Options.DISABLED_IsEndedOnAShortStack",
         .environment = {"HAKMEM_STATS=" + to, "HAKMEM_STATS_AT_SIGNALS=1"}});
    unlink(path.c_str());
    ASSERT_TRUE(WIFSIGNALED(child.wait_status)) << child.output;
    EXPECT_EQ(WTERMSIG(child.wait_status), SIGTERM) << to << child.output;
  }
}

TEST(Options, DISABLED_HandlesASignal) {
  signal(SIGTERM, [](int) { _exit(0); });
  raise(SIGTERM);
}

TEST(Options, DISABLED_FindsNoHandler) {
  struct sigaction action = {};
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    ASSERT_EQ(sigaction(number, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << number;
  }
}

TEST(Options, OnlyBothTogetherSetUpHandlers) {
  HAKMEM_ONLY_ON_HAKMEM();
  for (const char* const option :
       {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"}) {
    const ChildResult child = RunChild(
        {.test = "Options.DISABLED_FindsNoHandler", .environment = {option}});
    EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  }
}

TEST(Options, DISABLED_IgnoresASignal) { raise(SIGINT); }

TEST(Options, ASignalThatEndsNothingTellsNoStatistics) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult handled = RunChild(
      {.test = "Options.DISABLED_HandlesASignal",
       .environment = {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"}});
  EXPECT_TRUE(ExitedWithZero(handled.wait_status)) << handled.output;
  EXPECT_EQ(handled.output.find("{\"pid\""), std::string::npos);
  const ChildResult ignored =
      RunChild({.test = "Options.DISABLED_IgnoresASignal",
                .environment = {"HAKMEM_STATS=1", "HAKMEM_STATS_AT_SIGNALS=1"},
                .before_exec = [] { signal(SIGINT, SIG_IGN); }});
  EXPECT_TRUE(ExitedWithZero(ignored.wait_status)) << ignored.output;
  const std::string line = FirstLineWith(ignored.output, "{\"pid\"");
  EXPECT_FALSE(line.empty()) << ignored.output;
  EXPECT_EQ(line.find("\"signal\""), std::string::npos) << line;
}

TEST(Options, StatisticsAreAppendedToAFile) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path =
      testing::TempDir() + "/hakmem_stats_" + std::to_string(getpid());
  for (int run = 0; run < 2; ++run) {
    const ChildResult child =
        RunChild({.test = "Options.DISABLED_Succeeds",
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

TEST(Options, StatisticsOfEachProcessCanHaveAFileOfItsOwn) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string folder =
      testing::TempDir() + "/hakmem_stats_" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_Succeeds",
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

TEST(Options, StatisticsFollowNoSymbolicLink) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string target =
      testing::TempDir() + "/hakmem_target_" + std::to_string(getpid());
  const std::string link = target + ".link";
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  const ChildResult child = RunChild({.test = "Options.DISABLED_Succeeds",
                                      .environment = {"HAKMEM_STATS=" + link}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find(link + ": it is a symbolic link\n"),
            std::string::npos)
      << child.output;
  EXPECT_EQ(access(target.c_str(), F_OK), -1);
  unlink(link.c_str());
}

TEST(Options, DISABLED_FreesTwiceFarFromItsFolder) {
  void* const block = malloc(100);
  // As a daemon.
  if (chdir("/") != 0) _exit(1);
  free(block);
  free(block);
}

TEST(Options, ReportsGoToAFile) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path =
      testing::TempDir() + "/hakmem_report_" + std::to_string(getpid());
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_FreesTwiceFarFromItsFolder",
                .environment = {"HAKMEM_REPORT=" + path}});
  EXPECT_FALSE(ExitedWithZero(child.wait_status));
  EXPECT_EQ(child.output.find("fatal"), std::string::npos) << child.output;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line.find("hakmem: fatal: double free of "), 0U) << line;
  unlink(path.c_str());
}

TEST(Options, DISABLED_ClosesItsOutputs) {
  std::atexit([] {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
  });
}

TEST(Options, StatisticsArriveWhenTheProgramHasClosedStderr) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_ClosesItsOutputs",
                .environment = {"HAKMEM_STATS=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find("{\"pid\""), std::string::npos) << child.output;
}

TEST(Options, StatisticsFileThatCannotBeOpenedIsReported) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_STATS=/no/such/folder/file"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find("hakmem: warning: HAKMEM_STATS: cannot open "
                              "/no/such/folder/file"),
            std::string::npos)
      << child.output;
}

TEST(Options, StatisticsThatCannotBeWrittenAreReported) {
  HAKMEM_ONLY_ON_HAKMEM();
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_STATS=/dev/full"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find("hakmem: warning: HAKMEM_STATS: cannot write to "
                              "/dev/full: No space left on device\n"),
            std::string::npos)
      << child.output;
}

TEST(Options, DISABLED_RequestsOverAMegabyteFail) {
  void* const small = malloc(Opaque(kTestMiB));
  ASSERT_NE(small, nullptr);
  free(small);
  errno = 0;
  EXPECT_EQ(malloc(Opaque(kTestMiB + 1)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Options, MaxAllocLimitsARequest) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_RequestsOverAMegabyteFail",
                .environment = {"HAKMEM_MAX_ALLOC=1M"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST(Options, DISABLED_HundredMegabytesFail) {
  void* blocks[200] = {};
  int served = 0;
  for (void*& block : blocks) {
    block = malloc(kTestMiB / 2);
    if (block == nullptr) break;
    ++served;
  }
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_GT(served, 40);
  EXPECT_LE(served, 128);
  for (void* block : blocks) free(block);
}

TEST(Options, HeapLimitLimitsTheHeap) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_HundredMegabytesFail",
                .environment = {"HAKMEM_HEAP_LIMIT=64M"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

// A burst of small blocks, freed; then the program sleeps until the memory has
// gone back, for ever if need be: the test's own time limit ends that.
void SleepUntilABurstHasGoneBack() {
  const std::size_t before = ResidentBytes();
  std::vector<void*> blocks(200'000);
  for (void*& block : blocks) {
    block = malloc(Opaque(std::size_t{300}));
    memset(block, 1, 300);
  }
  EXPECT_GT(ResidentBytes(), before + 40 * kTestMiB);
  for (void* block : blocks) free(block);
  // The debug variant's records of freed blocks stay: 16 bytes for 32 of
  // theirs.
  const bool has_records = std::strcmp(Hakmem().variant(), "debug") == 0;
  const std::size_t kept_bytes = (has_records ? 45 : 10) * kTestMiB;
  while (ResidentBytes() > before + kept_bytes) usleep(10'000);
}

TEST(Options, DISABLED_BurstGoesBackWhileAllSleep) {
  SleepUntilABurstHasGoneBack();
  // The child has to get a thread of its own.
  EXPECT_TRUE(ExitedWithZero(RunInFork(&SleepUntilABurstHasGoneBack)));
}

TEST(Options, BackgroundGivesMemoryBackWhileAllSleep) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_BurstGoesBackWhileAllSleep",
                .environment = {"HAKMEM_BACKGROUND=1", "HAKMEM_DECAY_MS=50"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

// Until it is found, for ever if need be: the test's own time limit ends that.
TEST(Options, DISABLED_SleepsWithADamagedBlock) {
  constexpr std::size_t kBytes = 50'000;
  auto* block = static_cast<char*>(malloc(Opaque(kBytes)));
  // Keeps its slab from going back.
  Opaque(malloc(Opaque(kBytes)));
  free(block);
  // Beyond the places that malloc would look at.
  Opaque(block)[kBytes / 2 + 1234] = 1;
  for (;;) pause();
}

TEST(Options, BackgroundFindsDamage) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string variant = Hakmem().variant();
  if (variant != "hardened" && variant != "debug") return;
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_SleepsWithADamagedBlock",
                .environment = {"HAKMEM_BACKGROUND=1", "HAKMEM_DECAY_MS=50"}});
  EXPECT_TRUE(WIFSIGNALED(child.wait_status) &&
              WTERMSIG(child.wait_status) == SIGABRT)
      << child.output;
  const std::regex expected(
      "hakmem: fatal: write after free of 0x[0-9a-f]+ .*\n"
      "  in the background check, thread [0-9]+");
  EXPECT_TRUE(std::regex_search(child.output, expected)) << child.output;
}

}  // namespace
}  // namespace hakmem
