#include "allocator/process/system_log.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hakmem {
namespace {

// As the log's daemon.
class SystemLogTest : public testing::Test {
 protected:
  SystemLogTest() : fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(
        bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
        0);
  }
  ~SystemLogTest() override {
    close(fd_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  // The next message; "": there is none.
  std::string Receive() const {
    char text[2000];
    const ssize_t bytes = recv(fd_, text, sizeof(text), MSG_DONTWAIT);
    return {text, bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
  }

  // Short, as a socket's path must be; another sandbox has the same numbers of
  // processes, and may have the same /tmp.
  char name_[24] = "/tmp/hakmem_log_XXXXXX";
  const std::string folder_ = mkdtemp(name_);
  const std::string path_ = folder_ + "/socket";
  const int fd_;
};

TEST_F(SystemLogTest, EachLineIsAMessage) {
  errno = 99;
  EXPECT_EQ(SendToSystemLog(path_.c_str(), "hakmem: one\n  two\nthree"), 0);
  EXPECT_EQ(errno, 99);
  const std::string head = "<10>hakmem[" + std::to_string(getpid()) + "]: ";
  EXPECT_EQ(Receive(), head + "hakmem: one");
  EXPECT_EQ(Receive(), head + "  two");
  EXPECT_EQ(Receive(), head + "three");
  EXPECT_EQ(Receive(), "");
}

TEST_F(SystemLogTest, NobodyListens) {
  EXPECT_EQ(SendToSystemLog("/no/such/socket", "text\n"), ENOENT);
}

}  // namespace
}  // namespace hakmem
