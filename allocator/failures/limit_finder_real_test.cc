// The finder in processes that the kernel really refuses memory.
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <thread>

#include "allocator/base/sanitizer.h"
#include "allocator/failures/limit_finder.h"
#include "allocator/platform/fake_sandbox.h"
#include "allocator/platform/start_filter.h"
#include "allocator/process/test_waits.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/modules.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kMiB = 1 << 20;

void* Map(std::size_t bytes, int protection = PROT_READ | PROT_WRITE) {
  return mmap(nullptr, bytes, protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// What a child process leaves to its parent.
struct Answer {
  LimitReport report;
  int error_number = 0;
  bool refused = false;
};

class LimitFinderRealTest : public testing::Test {
 protected:
  LimitFinderRealTest()
      : answer_(new(mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Answer) {}
  ~LimitFinderRealTest() override { munmap(answer_, sizeof(Answer)); }
  void SetUp() override {
    if (kAddressSanitizer || kThreadSanitizer) {
      GTEST_SKIP() << "the sanitizer's own memory would be refused, too";
    }
  }

  // Runs `limit` and then asks for `bytes` in a child. False: the child could
  // not set the limit.
  bool Refuse(std::size_t bytes, const std::function<bool()>& limit) {
    *answer_ = Answer();
    const pid_t child = fork();
    if (child == 0) {
      const auto find = [&] {
        if (!limit()) return 1;
        // The kernel may find a little memory yet.
        for (int i = 0; i < 1000 && !answer_->refused; ++i) {
          answer_->refused = Map(bytes) == MAP_FAILED;
        }
        answer_->error_number = errno;
        answer_->report.may_open_files = may_open_files_;
        FindLimit(bytes, errno, answer_->report);
        return errno == answer_->error_number ? 0 : 2;
      };
      if (!first_thread_stays_) ExitWithoutFirstThread(find);
      _exit(find());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_LE(WEXITSTATUS(status), 1) << "errno was changed";
    return WEXITSTATUS(status) == 0;
  }

  const LimitReport& report() const { return answer_->report; }
  LimitReading Explaining() const {
    return report().explaining < 0 ? LimitReading()
                                   : report().readings[report().explaining];
  }

  Answer* const answer_;
  bool may_open_files_ = true;
  bool first_thread_stays_ = true;
};

// Of /proc/self/status, in bytes.
std::uint64_t StatusBytes(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == name + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

bool Limit(int resource, std::uint64_t bytes) {
  const rlimit limit = {bytes, bytes};
  return setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
}

TEST_F(LimitFinderRealTest, AddressSpace) {
  const std::uint64_t limit = StatusBytes("VmSize") + 8 * kMiB;
  ASSERT_TRUE(Refuse(16 * kMiB, [&] { return Limit(RLIMIT_AS, limit); }));
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(answer_->error_number, ENOMEM);
  EXPECT_EQ(report().detail, FailureDetail::kRlimitAs);
  EXPECT_STREQ(Explaining().name, "RLIMIT_AS");
  EXPECT_EQ(Explaining().value, limit);
  EXPECT_GT(Explaining().use + 16 * kMiB, limit);
  EXPECT_LE(Explaining().use, limit);
}

TEST_F(LimitFinderRealTest, AddressSpaceWhereTheFirstThreadHasEnded) {
  first_thread_stays_ = false;
  // A thread's stack comes on top.
  const std::uint64_t limit = StatusBytes("VmSize") + 256 * kMiB;
  ASSERT_TRUE(Refuse(256 * kMiB, [&] { return Limit(RLIMIT_AS, limit); }));
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(report().detail, FailureDetail::kRlimitAs);
  EXPECT_EQ(Explaining().value, limit);
  EXPECT_GT(Explaining().use + 256 * kMiB, limit);
  EXPECT_EQ(report().readings[0].name, kLimitMaxMapCount);
  EXPECT_GT(report().readings[0].use, 1u);
}

// Beside a thread, and with a kernel that kills whoever opens a file.
bool BesideAThread() {
  IsFiltered();  // as at the start
  std::thread([] {
    for (;;) pause();
  }).detach();
  return ForbidSystemCalls({SYS_openat}, kKills);
}

TEST_F(LimitFinderRealTest, AddressSpaceWithoutFiles) {
  const std::uint64_t limit = StatusBytes("VmSize") + 20 * kMiB;
  may_open_files_ = false;
  ASSERT_TRUE(Refuse(
      16 * kMiB, [&] { return BesideAThread() && Limit(RLIMIT_AS, limit); }));
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(report().detail, FailureDetail::kRlimitAs);
  EXPECT_STREQ(Explaining().name, "RLIMIT_AS");
  EXPECT_EQ(Explaining().value, limit);
  EXPECT_EQ(Explaining().use, limit + 1 - 16 * kMiB);
}

// RLIMIT_DATA counts what can be written alone, and is not told from others.
TEST_F(LimitFinderRealTest, DataWithoutFiles) {
  const std::uint64_t limit = StatusBytes("VmData") + 20 * kMiB;
  may_open_files_ = false;
  ASSERT_TRUE(Refuse(
      16 * kMiB, [&] { return BesideAThread() && Limit(RLIMIT_DATA, limit); }));
  if (!answer_->refused) GTEST_SKIP() << "told to ignore the limit";
  EXPECT_EQ(report().detail, FailureDetail::kUnknown);
  EXPECT_EQ(report().count, 0u);
}

TEST_F(LimitFinderRealTest, Data) {
  const std::uint64_t limit = StatusBytes("VmData") + 8 * kMiB;
  ASSERT_TRUE(Refuse(16 * kMiB, [&] { return Limit(RLIMIT_DATA, limit); }));
  if (!answer_->refused) GTEST_SKIP() << "told to ignore the limit";
  EXPECT_EQ(report().detail, FailureDetail::kRlimitData);
  EXPECT_EQ(Explaining().value, limit);
  EXPECT_GT(Explaining().use + 16 * kMiB, limit);
  EXPECT_LE(Explaining().use, limit);
}

TEST_F(LimitFinderRealTest, LockedMemory) {
  const bool limited = Refuse(2 * kMiB, [] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    return Limit(RLIMIT_MEMLOCK, kMiB) &&
           syscall(SYS_capset, &header, none) == 0 &&
           syscall(SYS_mlockall, MCL_FUTURE) == 0;
  });
  if (!limited) GTEST_SKIP() << "mlockall is not allowed here";
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(answer_->error_number, EAGAIN);
  EXPECT_EQ(report().detail, FailureDetail::kRlimitMemlock);
  EXPECT_STREQ(Explaining().name, "RLIMIT_MEMLOCK");
  EXPECT_EQ(Explaining().value, kMiB);
}

TEST_F(LimitFinderRealTest, Mappings) {
  std::uint64_t limit = 0;
  ASSERT_TRUE(ProcReader().ReadNumber("/proc/sys/vm/max_map_count", limit));
  if (limit > 300000) GTEST_SKIP() << "vm.max_map_count is " << limit;
  ASSERT_TRUE(Refuse(kMiB, [] {
    int protection = PROT_READ;
    while (Map(4096, protection) != MAP_FAILED) protection ^= PROT_READ;
    return true;
  }));
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(answer_->error_number, ENOMEM);
  EXPECT_EQ(report().detail, FailureDetail::kMaxMapCount);
  EXPECT_EQ(Explaining().value, limit);
  EXPECT_EQ(Explaining().use, limit + 1);
  EXPECT_EQ(report().needed, 1u);
}

// No descriptor is free, or there is no /proc.
TEST_F(LimitFinderRealTest, WhereNoFileCanBeReadTheKernelIsTried) {
  ASSERT_TRUE(Refuse(16 * kMiB, [] {
    return Limit(RLIMIT_AS, kMiB) && Limit(RLIMIT_NOFILE, 0);
  }));
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(report().detail, FailureDetail::kRlimitAs);
  EXPECT_STREQ(Explaining().name, "RLIMIT_AS");
  EXPECT_EQ(Explaining().value, kMiB);
  EXPECT_EQ(report().count, 1u);
}

// What a full control group does to the finder itself.
TEST_F(LimitFinderRealTest, AKernelWithoutMemoryForFilesIsAFullCgroup) {
  for (const int call : {SYS_openat, SYS_read}) {
    ASSERT_TRUE(Refuse(16 * kMiB, [call] {
      return Limit(RLIMIT_AS, kMiB) && ForbidSystemCalls({call}, ENOMEM);
    }));
    EXPECT_EQ(report().detail, FailureDetail::kCgroup);
    EXPECT_EQ(report().explaining, -1);
    EXPECT_EQ(report().count, 0u);
  }
}

bool WriteFile(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  return out.good();
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Until it ends, gives a control group more memory once that is needed to go
// on: who touches memory in a full one sleeps, or is refused again and again.
class Rescue {
 public:
  explicit Rescue(const std::string& folder)
      : thread_([this, folder] {
          AwaitThat([&] { return done_ || IsStuck(folder); });
          if (done_) return;
          has_given_ = true;
          WriteFile(folder + "/memory.limit_in_bytes", "1073741824");
        }) {}
  ~Rescue() { Stop(); }

  void Stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Once stopped.
  bool has_given() const { return has_given_; }

 private:
  static bool IsStuck(const std::string& folder) {
    constexpr unsigned long kManyRefusals = 20'000;
    return ReadFile(folder + "/memory.oom_control").find("under_oom 1") !=
               std::string::npos ||
           std::stoul("0" + ReadFile(folder + "/memory.failcnt")) >
               kManyRefusals;
  }

  std::atomic<bool> done_{false};  // written by the owner, read by the thread
  bool has_given_ = false;         // written by the thread, read once it ended
  std::thread thread_;
};

// Has the kernel give the process all that it may touch. False: it may not ask.
bool TouchAll() {
  volatile char stack[64 * 1024];
  for (std::size_t i = 0; i < sizeof(stack); i += 4096) stack[i] = 1;
  return syscall(SYS_mlockall, MCL_CURRENT) == 0;
}

// A full group refuses what the kernel needs for a mapping when its processes
// must not be killed. Version 1 has a switch for that.
TEST_F(LimitFinderRealTest, AFullCgroup) {
  const std::string folder =
      "/sys/fs/cgroup/memory/hakmem_limit_test_" + std::to_string(getpid());
  if (mkdir(folder.c_str(), 0755) != 0) {
    GTEST_SKIP() << "cannot make " << folder << ": " << std::strerror(errno);
  }
  const bool set = WriteFile(folder + "/memory.limit_in_bytes", "6291456") &&
                   WriteFile(folder + "/memory.oom_control", "1");
  bool limited = false;
  if (set) {
    Rescue rescue(folder);
    limited = Refuse(kMiB, [&] {
      if (!WriteFile(folder + "/cgroup.procs", std::to_string(getpid())) ||
          !TouchAll()) {
        return false;
      }
      int protection = PROT_READ;
      while (Map(4096, protection) != MAP_FAILED) protection ^= PROT_READ;
      return true;
    });
    rescue.Stop();
    // Then it has met another limit.
    limited = limited && !rescue.has_given();
  }
  // The kernel lets go of a group's last memory by and by.
  AwaitThat([&] { return rmdir(folder.c_str()) == 0 || errno != EBUSY; });
  if (!limited) GTEST_SKIP() << "cannot limit " << folder;
  ASSERT_TRUE(answer_->refused);
  EXPECT_EQ(answer_->error_number, ENOMEM);
  EXPECT_EQ(report().detail, FailureDetail::kCgroup);
}

// --- The stack that it takes ------------------------------------------------

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr unsigned char kPaint = 0xa5;

// The caller's, for the signal handler; read once it has run.
unsigned char* g_stack = nullptr;
std::size_t g_used = 0;
LimitReport g_report;

void Handler(int) {
  FindLimit(kMiB, ENOMEM, g_report);
  CallStack stack;
  CaptureStack(__builtin_frame_address(0), stack);
  ModuleOf module;
  FindModule(stack.addresses[0], module);
  auto* const here = static_cast<unsigned char*>(__builtin_frame_address(0));
  const unsigned char* const lowest =
      std::find_if(g_stack, here, [](unsigned char c) { return c != kPaint; });
  g_used = static_cast<std::size_t>(here - lowest);
}

TEST(LimitFinderStackTest, ASmallSignalStackIsEnough) {
  if (kAddressSanitizer || kThreadSanitizer || kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "sanitizers need more stack than anything";
  }
  g_stack = static_cast<unsigned char*>(Map(kStackBytes));
  std::fill_n(g_stack, kStackBytes, kPaint);
  const stack_t alternate = {g_stack, 0, kStackBytes};
  stack_t before = {};
  ASSERT_EQ(sigaltstack(&alternate, &before), 0);
  struct sigaction action = {};
  action.sa_handler = &Handler;
  action.sa_flags = SA_ONSTACK;
  struct sigaction previous = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &previous), 0);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &previous, nullptr);
  sigaltstack(&before, nullptr);
  munmap(g_stack, kStackBytes);
  EXPECT_GT(g_report.count, 0u);
  EXPECT_GT(g_used, 512u);
  EXPECT_LE(g_used, 5 * 1024u);
  RecordProperty("stack_bytes", static_cast<int>(g_used));
}

}  // namespace
}  // namespace hakmem
