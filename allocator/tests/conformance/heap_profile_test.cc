// The heap profile: what hakmem_heap_profile and HAKMEM_HEAP_PROFILE write.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "allocator/process/test_waits.h"
#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string Profile() {
  char path[] = "/tmp/hakmem_profile_XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(Hakmem().heap_profile(fd), 0);
  close(fd);
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  unlink(path);
  return text;
}

std::string LineOf(const std::string& text, const std::string& kind) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"kind\":\"" + kind + "\"") != std::string::npos) {
      return line;
    }
  }
  return "";
}

// The bytes of one of the sums of a line.
double BytesOf(const std::string& line, const std::string& sum) {
  std::smatch found;
  const std::regex figure("\"" + sum +
                          R"(":\{"samples":\d+,"blocks":\d+,"bytes":(\d+)\})");
  return std::regex_search(line, found, figure) ? std::stod(found[1]) : -1;
}

// In a child: other tests want to know how much memory the process has.
TEST(HeapProfile, SumsAreWithinSamplingErrorOfWhatIsLive) {
  HAKMEM_ONLY_ON_HAKMEM();
  if (getenv("HAKMEM_PROFILE_BYTES") != nullptr) {
    GTEST_SKIP() << "not the default: one byte in 512 KiB";
  }
  const int status = RunInFork([] {
    constexpr double kMean = 512 * 1024;
    const auto live = [] { return BytesOf(LineOf(Profile(), "end"), "live"); };
    const double before = live();
    std::vector<void*> blocks;
    double bytes = 0;
    double variance = 0;
    for (unsigned i = 0; i < 40'000; ++i) {
      const std::size_t size = 64U << i % 8;
      // Hardened variants put 8 bytes behind it.
      blocks.push_back(malloc(size - 8));
      bytes += static_cast<double>(size);
      const double chance = -std::expm1(-static_cast<double>(size) / kMean);
      variance += std::pow(size, 2) * (1 - chance) / chance;
    }
    const double during = live();
    // Once in two million runs.
    if (std::abs(during - before - bytes) > 5 * std::sqrt(variance)) _exit(1);
    if (BytesOf(LineOf(Profile(), "end"), "peak") < 0.9 * during) _exit(2);
    for (void* const block : blocks) free(block);
    // What the vector was moved to is gone, and what it is in was not there.
    _exit(std::abs(live() - before) > 3e6 ? 3 : 0);
  });
  EXPECT_TRUE(ExitedWithZero(status)) << status;
}

TEST(HeapProfile, TellsOfSitesAndModules) {
  HAKMEM_ONLY_ON_HAKMEM();
  void* const block = malloc(50 * kTestMiB);
  const std::string text = Profile();
  free(block);
  EXPECT_TRUE(text.starts_with(
      R"({"schema":"hakmem-heap-profile","version":1,"kind":"start",)"));
  EXPECT_NE(LineOf(text, "module"), "");
  bool found = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    found = found || (line.starts_with(R"({"kind":"site")") &&
                      BytesOf(line, "live") >= 50 * kTestMiB &&
                      line.find(R"("stack":["0x)") != std::string::npos);
  }
  EXPECT_TRUE(found) << text;
}

TEST(HeapProfile, SaysWhatCannotBeWritten) {
  HAKMEM_ONLY_ON_HAKMEM();
  errno = 0;
  EXPECT_EQ(Hakmem().heap_profile(-1), -1);
  EXPECT_EQ(errno, EBADF);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(Hakmem().heap_profile(full), -1);
  EXPECT_EQ(errno, ENOSPC);
  close(full);
}

// While others allocate, and free what is sampled.
TEST(HeapProfile, IsWrittenBesideRunningThreads) {
  HAKMEM_ONLY_ON_HAKMEM();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) {
        free(malloc(100'000));
        free(realloc(malloc(1000), 40'000));
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_NE(LineOf(Profile(), "end"), "");
  for (std::thread& thread : threads) thread.join();
}

TEST(HeapProfile, GoesOnInTheChildOfAFork) {
  HAKMEM_ONLY_ON_HAKMEM();
  void* const block = malloc(60 * kTestMiB);
  const int status = RunInFork([block] {
    const double live = BytesOf(LineOf(Profile(), "end"), "live");
    if (live < 60 * kTestMiB) _exit(1);
    free(block);
    void* const more = malloc(20 * kTestMiB);
    const double now = BytesOf(LineOf(Profile(), "end"), "live");
    free(more);
    if (now > live - 39 * kTestMiB || now < live - 41 * kTestMiB) _exit(2);
    _exit(0);
  });
  EXPECT_TRUE(ExitedWithZero(status));
  free(block);
}

// What is written of the peak is an estimate from samples; of so many blocks
// its standard deviation is 2 %.
constexpr int kPeakBlocks = 400;
constexpr std::size_t kLeastPeakBytes = kPeakBlocks * kTestMiB / 10 * 9;

TEST(HeapProfile, DISABLED_Allocates) {
  std::vector<void*> blocks;
  for (int i = 0; i < kPeakBlocks; ++i) blocks.push_back(malloc(kTestMiB));
  for (void* const block : blocks) free(block);
}

TEST(HeapProfile, IsWrittenAtExit) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string folder = testing::TempDir() + "/hakmem_profile";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const ChildResult child =
      RunChild({.test = "HeapProfile.DISABLED_Allocates",
                .environment = {"HAKMEM_HEAP_PROFILE=" + folder + "/of.%p"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1U);
  struct stat about = {};
  ASSERT_EQ(stat(files[0].c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  std::ifstream in(files[0]);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_GE(BytesOf(LineOf(text, "end"), "peak"), kLeastPeakBytes);
  EXPECT_LT(BytesOf(LineOf(text, "end"), "live"), 20 * kTestMiB);
}

void AllocateTillTheEnd(bool ends) {
  for (std::atomic<int> round = 0;; ++round) {
    void* const block = malloc(kTestMiB);
    if (ends && round == 100) kill(getpid(), SIGTERM);
    free(block);
  }
}

// On a thread that takes a sample meanwhile, and beside one that does.
TEST(HeapProfile, DISABLED_IsEnded) {
  std::thread([] { AllocateTillTheEnd(false); }).detach();
  AllocateTillTheEnd(true);
}

TEST(HeapProfile, IsWrittenAtASignalThatEndsTheProcess) {
  HAKMEM_ONLY_ON_HAKMEM();
  for (int run = 0; run < 10; ++run) {
    const ChildResult child =
        RunChild({.test = "HeapProfile.DISABLED_IsEnded",
                  .environment = {"HAKMEM_HEAP_PROFILE=1"}});
    ASSERT_TRUE(WIFSIGNALED(child.wait_status)) << child.output;
    EXPECT_EQ(WTERMSIG(child.wait_status), SIGTERM) << child.output;
    EXPECT_NE(child.output.find("{\"kind\":\"end\""), std::string::npos)
        << child.output;
  }
}

// What a file has that another process locked until a child came to write its
// profile there.
std::string ProfileBehindAnother(const std::string& path) {
  const int fd = open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  EXPECT_EQ(fcntl(fd, F_OFD_SETLK, &whole), 0);
  EXPECT_EQ(write(fd, "first\n", 6), 6);
  auto* const child_id = static_cast<std::atomic<pid_t>*>(
      mmap(nullptr, sizeof(std::atomic<pid_t>), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  EXPECT_NE(child_id, MAP_FAILED);
  ChildResult child;
  TestThread runner([&] {
    child = RunChild({.test = "HeapProfile.DISABLED_Allocates",
                      .environment = {"HAKMEM_HEAP_PROFILE=" + path},
                      .before_exec = [=] { *child_id = getpid(); }});
  });
  // It asks for the lock again and again, and sleeps between.
  AwaitThat([&] {
    return runner.has_ended() ||
           (*child_id != 0 && SleepsIn(*child_id, SYS_nanosleep));
  });
  EXPECT_EQ(write(fd, "second\n", 7), 7);
  close(fd);
  runner.Join();
  munmap(child_id, sizeof(*child_id));
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// As of another process that ends at the same time.
TEST(HeapProfile, IsWrittenAtExitBehindWhatAnotherOneWrites) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string path = testing::TempDir() + "/hakmem_profile_of_two";
  std::string text;
  // It asks a hundred times only, which on a busy machine this process may
  // sleep through.
  for (int tries = 0; tries < 20 && !text.starts_with("first\nsecond\n");
       ++tries) {
    text = ProfileBehindAnother(path);
  }
  EXPECT_EQ(text.substr(0, 13), "first\nsecond\n");
  EXPECT_GE(BytesOf(LineOf(text, "end"), "peak"), kLeastPeakBytes);
  unlink(path.c_str());
}

TEST(HeapProfile, DoesNotFollowALink) {
  HAKMEM_ONLY_ON_HAKMEM();
  const std::string link = testing::TempDir() + "/hakmem_profile_link";
  const std::string target = testing::TempDir() + "/hakmem_profile_target";
  unlink(link.c_str());
  unlink(target.c_str());
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  const ChildResult child =
      RunChild({.test = "HeapProfile.DISABLED_Allocates",
                .environment = {"HAKMEM_HEAP_PROFILE=" + link}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_NE(child.output.find("hakmem: warning: HAKMEM_HEAP_PROFILE: cannot "
                              "open"),
            std::string::npos)
      << child.output;
  EXPECT_NE(access(target.c_str(), F_OK), 0);
  unlink(link.c_str());
}

TEST(HeapProfile, SaysThatItCannotBeWritten) {
  HAKMEM_ONLY_ON_HAKMEM();
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const ChildResult child =
      RunChild({.test = "HeapProfile.DISABLED_Allocates",
                .environment = {"HAKMEM_HEAP_PROFILE=/dev/full"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status));
  EXPECT_TRUE(ToldWithProcess(
      child,
      "hakmem: warning: HAKMEM_HEAP_PROFILE: cannot write to /dev/full: No "
      "space left on device"))
      << child.output;
}

TEST(HeapProfile, DISABLED_IsOff) {
  free(malloc(100 * kTestMiB));
  EXPECT_EQ(Hakmem().heap_profile(1), -1);
  EXPECT_EQ(errno, ENOTSUP);
}

TEST(HeapProfile, CanBeSwitchedOff) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = RunChild(
      {.test = "HeapProfile.DISABLED_IsOff",
       .environment = {"HAKMEM_PROFILE_BYTES=0", "HAKMEM_HEAP_PROFILE=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(child.output.find("hakmem-heap-profile"), std::string::npos);
}

}  // namespace
}  // namespace hakmem
