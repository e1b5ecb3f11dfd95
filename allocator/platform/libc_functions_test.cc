#include "allocator/platform/libc_functions.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "allocator/base/system_call.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class LibcFunctionsTest : public testing::Test {
 protected:
  LibcFunctionsTest() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    pages_ = static_cast<char*>(mmap(nullptr, 3 * page_, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    pages_[0] = pages_[page_] = pages_[2 * page_] = 7;
    errno = 1234;
  }
  ~LibcFunctionsTest() override {
    EXPECT_EQ(errno, 1234);
    munmap(pages_, 3 * page_);
  }
  Address Page(std::size_t index) const {
    return reinterpret_cast<Address>(pages_) + index * page_;
  }

  void ExpectAllWork();

  const std::size_t page_;
  char* pages_;
};

std::uint64_t LibcsNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void LibcFunctionsTest::ExpectAllWork() {
  TellOfLoss(Page(1), page_);
  EXPECT_EQ(pages_[0], 7);
  EXPECT_EQ(pages_[page_], 7) << "it takes nothing";
  EXPECT_EQ(pages_[2 * page_], 7);
  EXPECT_EQ(AdviseAndTell(Page(1), page_, MADV_DONTNEED), 0);
  EXPECT_EQ(pages_[0], 7);
  EXPECT_EQ(pages_[page_], 0);
  EXPECT_EQ(pages_[2 * page_], 7);
  EXPECT_EQ(UnmapAndTell(Page(0) + 1, page_), EINVAL);
  EXPECT_EQ(UnmapAndTell(Page(1), page_), 0);
  EXPECT_EQ(AdviseAndTell(Page(1), page_, MADV_DONTNEED), ENOMEM);

  const std::uint64_t before_ns = LibcsNs();
  const std::uint64_t now_ns = ReadClock(CLOCK_MONOTONIC);
  EXPECT_GE(now_ns, before_ns);
  EXPECT_LE(now_ns, LibcsNs());
}

// In this order: what was found stays.
TEST_F(LibcFunctionsTest, WorkByNumber) { ExpectAllWork(); }

TEST_F(LibcFunctionsTest, WorkWhenTheyAreFound) {
  FindLibcFunctions([](const char* name) {
    return reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, name));
  });
  ExpectAllWork();
}

TEST_F(LibcFunctionsTest, StrictModeStopsClocksAndRefusesCalls) {
  const std::uint64_t before_ns = ReadClock(CLOCK_MONOTONIC);
  SetStrictMode(true);
  const std::uint64_t stopped_ns = ReadClock(CLOCK_MONOTONIC);
  EXPECT_GE(stopped_ns, before_ns);
  while (LibcsNs() <= stopped_ns) continue;
  EXPECT_EQ(ReadClock(CLOCK_MONOTONIC), stopped_ns);
  EXPECT_EQ(ReadClock(CLOCK_MONOTONIC_COARSE), stopped_ns);
  EXPECT_EQ(ReadClock(CLOCK_REALTIME), ReadClock(CLOCK_REALTIME));
  EXPECT_EQ(AdviseAndTell(Page(1), page_, MADV_DONTNEED), EPERM);
  EXPECT_EQ(UnmapAndTell(Page(1), page_), EPERM);
  EXPECT_EQ(SystemCall(SYS_getpid), -EPERM);
  EXPECT_EQ(pages_[page_], 7);
  std::thread([this, stopped_ns] {
    EXPECT_GT(ReadClock(CLOCK_MONOTONIC), stopped_ns);
    EXPECT_EQ(AdviseAndTell(Page(1), page_, MADV_DONTNEED), 0);
  }).join();
  EXPECT_EQ(pages_[page_], 0);
  pages_[page_] = 7;
  SetStrictMode(false);
  ExpectAllWork();
  EXPECT_GT(ReadClock(CLOCK_MONOTONIC), stopped_ns);
}

}  // namespace
}  // namespace hakmem
