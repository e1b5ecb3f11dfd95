// A move that the kernel refuses when it has moved a part.

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Linux moves the pages before those of the userfaultfd, and refuses these.
TEST(RefusedMoveTest, KeepsWhatHadMoved) {
  LinuxVirtualMemory memory;
  const std::size_t page = memory.PageBytes();
  const Address from =
      RoundUp(memory.RegionRange().begin, Address{kSuperSlabBytes});
  const Address to = from + 20 * page;
  const auto holds = [](Address at, std::size_t bytes, char value) {
    return std::string(reinterpret_cast<const char*>(at), bytes) ==
           std::string(bytes, value);
  };
  const int fd =
      static_cast<int>(syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY));
  uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) {
    GTEST_SKIP() << "there is no userfaultfd";
  }
  for (std::size_t before = 1; before < 8; ++before) {
    ASSERT_TRUE(memory.MapAt(from, 8 * page).ok());
    std::memset(reinterpret_cast<void*>(from), 7, 8 * page);
    uffdio_register range = {};
    range.range = {from + before * page, page};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(ioctl(fd, UFFDIO_REGISTER, &range), 0);
    const VmStatus status = memory.Move(from, to, 8 * page, false);
    EXPECT_EQ(status.error_number, EFAULT);
    EXPECT_TRUE(holds(from, 8 * page, 7)) << before;
    EXPECT_TRUE(holds(to, 8 * page, 0));
    EXPECT_TRUE(memory.Unmap(from, 8 * page).ok());
    EXPECT_TRUE(memory.Unmap(to, 8 * page).ok());
  }
  close(fd);
}

}  // namespace
}  // namespace hakmem
