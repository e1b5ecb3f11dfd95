// LinuxVirtualMemory: memory that is closed.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/platform/single_threaded.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Some pages in the region's range, unmapped again at the end.
class LinuxClosedMemoryTest : public testing::Test {
 protected:
  LinuxClosedMemoryTest()
      : page_(memory_.PageBytes()),
        base_(RoundUp(memory_.RegionRange().begin, Address{kSuperSlabBytes})) {}
  ~LinuxClosedMemoryTest() override {
    munmap(reinterpret_cast<void*>(base_), 8 * page_);
  }

  Address Page(std::size_t index) const { return base_ + index * page_; }
  char* At(std::size_t index) const {
    return reinterpret_cast<char*>(Page(index));
  }
  std::size_t CountMappingsIn(Address begin, std::size_t bytes) const {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    Address from = 0;
    Address to = 0;
    char dash = 0;
    for (std::string line; std::getline(maps, line);) {
      std::istringstream(line) >> std::hex >> from >> dash >> to;
      if (from < begin + bytes && begin < to) ++count;
    }
    return count;
  }
  void Fill(std::size_t index, std::size_t pages, char value) {
    std::memset(At(index), value, pages * page_);
  }
  bool Holds(std::size_t index, std::size_t pages, char value) const {
    const std::vector<char> expected(pages * page_, value);
    return std::memcmp(At(index), expected.data(), expected.size()) == 0;
  }

  LinuxVirtualMemory memory_;
  const std::size_t page_;
  const Address base_;
};

TEST_F(LinuxClosedMemoryTest, ClosedPagesStayClosed) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 3 * page_).ok());
  Fill(0, 3, 1);
  ASSERT_TRUE(memory_.Close(Page(1), page_).ok());
  EXPECT_TRUE(Holds(0, 1, 1));
  EXPECT_TRUE(Holds(2, 1, 1));
  ASSERT_TRUE(memory_.Purge(Page(0), 3 * page_).ok());
  EXPECT_TRUE(Holds(0, 1, 0));
  EXPECT_DEATH(*At(1) = 1, "");
}

TEST_F(LinuxClosedMemoryTest, OpenedPagesAreZero) {
  ASSERT_TRUE(memory_.MapClosed(Page(0), 3 * page_).ok());
  EXPECT_EQ(memory_.MapAt(Page(1), page_).error_number, EEXIST);
  EXPECT_DEATH(*At(1) = 1, "");
  ASSERT_TRUE(memory_.Open(Page(1), page_).ok());
  EXPECT_TRUE(Holds(1, 1, 0));
  Fill(1, 1, 7);
  ASSERT_TRUE(memory_.Open(Page(0), 2 * page_).ok());
  EXPECT_TRUE(Holds(0, 1, 0));
  EXPECT_TRUE(Holds(1, 1, 7));
  EXPECT_DEATH(*At(2) = 1, "");
}

// Where memory is locked, what is closed splits mappings; what was closed
// before is opened as ever.
TEST_F(LinuxClosedMemoryTest, OpensWhatWasClosedBeforeMemoryWasLocked) {
  ASSERT_TRUE(memory_.MapClosed(Page(0), 2 * page_).ok());
  ASSERT_TRUE(memory_.MapAt(Page(4), 2 * page_).ok());
  // Sanitizers make libc's function do nothing.
  if (syscall(SYS_mlock, At(4), 2 * page_) != 0) {
    GTEST_SKIP() << "nothing may be locked";
  }
  Fill(4, 2, 1);
  ASSERT_TRUE(memory_.Close(Page(5), page_).ok());
  EXPECT_TRUE(memory_.ClosingSplits());
  EXPECT_DEATH(*At(5) = 1, "");
  EXPECT_TRUE(Holds(4, 1, 1));
  ASSERT_TRUE(memory_.MapClosed(Page(6), 2 * page_).ok());
  EXPECT_DEATH(*At(6) = 1, "");
  ASSERT_TRUE(memory_.Open(Page(0), page_).ok());
  Fill(0, 1, 7);
  EXPECT_DEATH(*At(1) = 1, "");
  ASSERT_TRUE(memory_.Open(Page(6), page_).ok());
  Fill(6, 1, 7);
}

// Where it does not say that it does.
TEST_F(LinuxClosedMemoryTest, ClosingSplitsNoMapping) {
  ASSERT_TRUE(memory_.MapAt(Page(0), 5 * page_).ok());
  ASSERT_TRUE(memory_.Close(Page(1), page_).ok());
  ASSERT_TRUE(memory_.Close(Page(3), page_).ok());
  if (memory_.ClosingSplits()) GTEST_SKIP() << "Linux before 6.13";
  EXPECT_EQ(CountMappingsIn(Page(0), 5 * page_), 1U);
}

}  // namespace
}  // namespace hakmem
