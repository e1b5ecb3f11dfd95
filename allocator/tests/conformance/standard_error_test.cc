// What hakmem says unasked goes to the standard error that the program was
// started with, and into no file that has got its number since.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr char kDataFile[] = "DATA_FILE";

void OpenDataFiles(bool close_all) {
  const char* const path = getenv(kDataFile);
  fflush(stdout);
  for (int fd = 0; fd < (close_all ? 1024 : 3); ++fd) close(fd);
  for (int fd = 0; fd < 3; ++fd) {
    if (open(path, O_CREAT | O_RDWR, 0600) != fd) abort();
  }
  // A failed call, for the trace of them, and a misuse.
  if (Opaque(malloc(Opaque(SIZE_MAX / 2 + 1))) != nullptr) abort();
  void* const block = Opaque(malloc(100));
  free(block);
  free(Opaque(block));
}

TEST(StandardError, DISABLED_IsADataFileAtExit) {
  // The profile has something to say.
  for (int i = 0; i < 100; ++i) Opaque(malloc(kTestMiB));
  std::atexit([] { OpenDataFiles(false); });
}

TEST(StandardError, DISABLED_IsADataFileAtExitAndAllElseClosed) {
  for (int i = 0; i < 100; ++i) Opaque(malloc(kTestMiB));
  std::atexit([] { OpenDataFiles(true); });
}

class StandardErrorTest : public testing::Test {
 protected:
  StandardErrorTest()
      : path_(testing::TempDir() + "/hakmem_data_" + std::to_string(getpid())) {
    unlink(path_.c_str());
  }
  ~StandardErrorTest() override { unlink(path_.c_str()); }

  ChildResult Run(const char* test) const {
    return RunChild(
        {.test = test,
         .environment = {std::string(kDataFile) + "=" + path_, "HAKMEM_STATS=1",
                         "HAKMEM_LEAKS=1", "HAKMEM_HEAP_PROFILE=1",
                         "HAKMEM_ACE_TRACE=1", "HAKMEM_ON_MISUSE=log"}});
  }
  std::string Data() const {
    std::ifstream file(path_);
    EXPECT_TRUE(file.is_open());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string path_;
};

TEST_F(StandardErrorTest, OfADaemonIsTheOneItWasStartedWith) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child = Run("StandardError.DISABLED_IsADataFileAtExit");
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_NE(child.output.find("{\"pid\""), std::string::npos) << child.output;
  EXPECT_EQ(Data(), "");
}

TEST_F(StandardErrorTest, IsNoneWhereADaemonHasClosedAll) {
  HAKMEM_ONLY_ON_HAKMEM();
  const ChildResult child =
      Run("StandardError.DISABLED_IsADataFileAtExitAndAllElseClosed");
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(child.output.find("{\"pid\""), std::string::npos) << child.output;
  EXPECT_EQ(Data(), "");
}

}  // namespace
}  // namespace hakmem
