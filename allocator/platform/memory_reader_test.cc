#include "allocator/platform/memory_reader.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "allocator/base/compiler.h"
#include "allocator/platform/fake_sandbox.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Two pages, and a third beyond the end of their file, which nobody can read
// and where nothing else is mapped.
class MemoryReaderTest : public testing::Test {
 protected:
  MemoryReaderTest()
      : page_(static_cast<std::size_t>(getpagesize())),
        file_(memfd_create("memory_reader_test", MFD_CLOEXEC)),
        pages_(
            static_cast<char*>(mmap(nullptr, 3 * page_, PROT_READ | PROT_WRITE,
                                    MAP_SHARED, file_, 0))) {
    if (ftruncate(file_, static_cast<off_t>(2 * page_)) != 0) std::abort();
    for (std::size_t i = 0; i < 2 * page_; ++i) {
      pages_[i] = static_cast<char>(1 + i % 100);
    }
  }
  ~MemoryReaderTest() override {
    munmap(pages_, 3 * page_);
    close(file_);
  }

  static std::uintptr_t AddressOf(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

  bool ReadsAsItShould() {
    MemoryReader reader;
    char copy[64];
    char* const end = pages_ + 2 * page_;
    for (const char* from : {pages_, pages_ + page_ - 32, end - 64}) {
      if (!reader.Read(AddressOf(from), copy, 64)) return false;
      if (std::memcmp(copy, from, 64) != 0) return false;
    }
    for (const std::uintptr_t bad :
         {AddressOf(end), AddressOf(end - 63), std::uintptr_t{0},
          std::uintptr_t{8}, ~std::uintptr_t{0} - 7, std::uintptr_t{1} << 63}) {
      if (reader.Read(bad, copy, 64)) return false;
    }
    return reader.Read(AddressOf(pages_), copy, 1) && copy[0] == 1;
  }

  const std::size_t page_;
  const int file_;
  char* const pages_;
};

TEST_F(MemoryReaderTest, CopiesWhatIsThereAndRefusesTheRest) {
  errno = 1234;
  EXPECT_TRUE(ReadsAsItShould());
  EXPECT_EQ(errno, 1234);
}

// In children, for the filters stay. Their exit status is the answer.
TEST_F(MemoryReaderTest, ReadsByTheFileWhereASandboxForbidsTheCall) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv})) _exit(77);
        _exit(ReadsAsItShould() ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(MemoryReaderTest, ReadsWhereTheFirstThreadHasEnded) {
  const auto reads = [this] { return ReadsAsItShould() ? 42 : 1; };
  EXPECT_EXIT(ExitWithoutFirstThread(reads), testing::ExitedWithCode(42), "");
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv})) _exit(77);
        ExitWithoutFirstThread(reads);
      },
      testing::ExitedWithCode(42), "");
}

// Leaves set bits where the frames of what is called next will lie.
HAK_NOINLINE void ScribbleBelow() {
  volatile unsigned char room[4096];
  for (volatile unsigned char& byte : room) byte = 0xff;
}

TEST_F(MemoryReaderTest, NeedsNoFileWhateverTheStackHeld) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_openat})) _exit(77);
        MemoryReader reader;
        char copy = 0;
        ScribbleBelow();
        _exit(reader.Read(AddressOf(pages_), &copy, 1) && copy == 1 ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(MemoryReaderTest, RefusesWhereASandboxForbidsBoth) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv, SYS_openat})) _exit(77);
        MemoryReader reader;
        char copy = 0;
        errno = 1234;
        const bool read = reader.Read(AddressOf(pages_), &copy, 1) ||
                          reader.Read(AddressOf(pages_), &copy, 1);
        _exit(!read && errno == 1234 ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(MemoryReaderTest, AsksTheKernelNothingWhereARangeIsGiven) {
  EXPECT_EXIT(
      {
        const std::uintptr_t begin = AddressOf(pages_);
        MemoryReader reader(begin, begin + page_);
        char copy[64];
        if (!reader.Read(begin, copy, 64)) _exit(1);
        if (std::memcmp(copy, pages_, 64) != 0) _exit(2);
        if (!reader.Read(begin + page_ - 64, copy, 64)) _exit(3);
        for (const std::uintptr_t outside :
             {begin - 1, begin + page_ - 63, begin + page_,
              AddressOf(&page_)}) {
          if (reader.Read(outside, copy, 64)) _exit(4);
        }
        _exit(42);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(MemoryReaderTest, LeavesNoDescriptorOpen) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv})) _exit(77);
        const int before = dup(0);
        close(before);
        ReadsAsItShould();
        const int after = dup(0);
        _exit(before == after ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(MemoryReaderTest, ReadsTextUpToItsEnd) {
  MemoryReader reader;
  char copy[32];
  std::strcpy(pages_ + page_ - 6, "hello world");
  ASSERT_TRUE(
      reader.ReadText(AddressOf(pages_ + page_ - 6), copy, sizeof(copy)));
  EXPECT_STREQ(copy, "hello world");
  // Right before what is not mapped.
  std::strcpy(pages_ + 2 * page_ - 4, "end");
  ASSERT_TRUE(
      reader.ReadText(AddressOf(pages_ + 2 * page_ - 4), copy, sizeof(copy)));
  EXPECT_STREQ(copy, "end");
}

TEST_F(MemoryReaderTest, CutsTextThatIsTooLong) {
  MemoryReader reader;
  char copy[8];
  std::strcpy(pages_, "0123456789");
  ASSERT_TRUE(reader.ReadText(AddressOf(pages_), copy, sizeof(copy)));
  EXPECT_STREQ(copy, "0123456");
}

TEST_F(MemoryReaderTest, TextWithoutAnEndIsNone) {
  MemoryReader reader;
  char copy[64];
  EXPECT_FALSE(
      reader.ReadText(AddressOf(pages_ + 2 * page_ - 8), copy, sizeof(copy)));
  EXPECT_FALSE(reader.ReadText(0, copy, sizeof(copy)));
}

}  // namespace
}  // namespace hakmem
