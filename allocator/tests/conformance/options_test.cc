// What the environment makes a process print, and limits it sets.

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/process/test_waits.h"
#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(Options, DISABLED_Succeeds) { free(malloc(100)); }

// Runs before libc and the constructors of any library.
void AllocateFirst(int /*argc*/, char** /*argv*/, char** environment) {
  for (; *environment != nullptr; ++environment) {
    if (strcmp(*environment, "ALLOCATE_FIRST=1") == 0) free(malloc(100));
  }
}
__attribute__((section(".preinit_array"),
               used)) void (*g_allocate_first)(int, char**,
                                               char**) = &AllocateFirst;

TEST(Options, AreReadByAnAllocationBeforeLibcHasStarted) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"ALLOCATE_FIRST=1", "HAKMEM_SHOW_CONFIG=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(FirstLineWith(child.output, "HAKMEM_SHOW_CONFIG="),
            "  HAKMEM_SHOW_CONFIG=1 (environment)")
      << child.output;
}

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
  constexpr char kWeakened[] = "hakmem: warning: weakened by HAKMEM_CLEAR=300";
  const bool hardened = std::string(Hakmem().variant()) == "hardened";
  const ChildResult told =
      RunChild({.test = "Options.DISABLED_Succeeds",
                .environment = {"HAKMEM_CLEAR=300", "HAKMEM_WARN_WEAKENED=1"}});
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
  EXPECT_TRUE(ToldWithProcess(told, hardened ? "; using 100000" : "; using 0"))
      << told.output;
}

TEST(Options, DISABLED_MallocsWithoutMapping) {
  hakmem_statistics before = {};
  Hakmem().get_statistics(&before, sizeof(before));
  EXPECT_GE(before.pool.allocations, 500U);
  for (int i = 0; i < 500; ++i) EXPECT_NE(malloc(40'000), nullptr);
  hakmem_statistics after = {};
  Hakmem().get_statistics(&after, sizeof(after));
  EXPECT_EQ(after.map_calls, before.map_calls);
}

// Without the profile, which maps its tables with its first sample.
TEST(Options, PrewarmHasBlocksReadyBeforeTheProgramStarts) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_MallocsWithoutMapping",
                .environment = {"HAKMEM_PREWARM=100:10,40000:500",
                                "HAKMEM_PROFILE_BYTES=0"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
}

TEST(Options, PrewarmSaysHowManyBlocksItCouldNotHave) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild(
      {.test = "Options.DISABLED_Succeeds",
       .environment = {"HAKMEM_PREWARM=40000:5000", "HAKMEM_HEAP_LIMIT=64M"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_TRUE(std::regex_search(
      child.output,
      std::regex("hakmem: warning: HAKMEM_PREWARM: [0-9]{3,4} of 5000 blocks "
                 "of 40000 bytes are ready \\([a-z_.]+, process [0-9]+\\)\n")))
      << child.output;
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

// Also before libc knows its name.
TEST(Options, WarningsNameTheProcess) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild({.test = "Options.DISABLED_Succeeds",
                                      .environment = {"HAKMEM_NONSENSE=1"}});
  EXPECT_TRUE(ToldWithProcess(
      child, "HAKMEM_NONSENSE is not an option of hakmem; ignored"))
      << child.output;
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

// ResidentBytes(), without a call of malloc.
std::size_t ResidentBytesNow() {
  char text[128];
  const std::string_view pages = ReadProcOf(getpid(), "statm", text);
  std::size_t resident = 0;
  std::from_chars(pages.data() + pages.find(' ') + 1,
                  pages.data() + pages.size(), resident);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A burst of small blocks, freed; then the program leaves malloc alone until
// the memory has gone back, for ever if need be.
void WaitUntilABurstHasGoneBack() {
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
  AwaitThat([=] { return ResidentBytesNow() <= before + kept_bytes; });
}

TEST(Options, DISABLED_BurstGoesBackByItself) {
  WaitUntilABurstHasGoneBack();
  // The child has to get a thread of its own.
  EXPECT_TRUE(ExitedWithZero(RunInFork(&WaitUntilABurstHasGoneBack)));
}

TEST(Options, BackgroundGivesMemoryBackByItself) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      RunChild({.test = "Options.DISABLED_BurstGoesBackByItself",
                .environment = {"HAKMEM_BACKGROUND=2", "HAKMEM_DECAY_MS=50"}});
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
                .environment = {"HAKMEM_BACKGROUND=2", "HAKMEM_DECAY_MS=50"}});
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
