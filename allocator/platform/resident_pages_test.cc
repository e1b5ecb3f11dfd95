#include "allocator/platform/resident_pages.h"

#include <sys/mman.h>

#include <cstddef>

#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(ResidentPages, AreCountedInPieces) {
  FakeVirtualMemory memory;
  const std::size_t page_bytes = memory.PageBytes();
  constexpr std::size_t kPages = 1'300;
  const Address begin = memory.RegionRange().begin;
  ASSERT_TRUE(memory.MapAt(begin, kPages * page_bytes).ok());
  EXPECT_EQ(CountResidentPages(memory, begin, kPages, 7), 0U);
  for (const std::size_t page : {0, 511, 512, 1'023, 1'299}) {
    *reinterpret_cast<char*>(begin + page * page_bytes) = 1;
  }
  EXPECT_EQ(CountResidentPages(memory, begin, kPages, 7), 5U);
  EXPECT_EQ(CountResidentPages(memory, begin, 512, 7), 2U);
  EXPECT_EQ(CountResidentPages(memory, begin, 1, 7), 1U);
  EXPECT_EQ(CountResidentPages(memory, begin, 0, 7), 0U);
}

TEST(ResidentPages, AreNotToldOfAll) {
  LinuxVirtualMemory memory;
  const std::size_t bytes = 1'024 * memory.PageBytes();
  void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(begin, MAP_FAILED);
  const auto address = reinterpret_cast<Address>(begin);
  ASSERT_EQ(munmap(static_cast<char*>(begin) + bytes / 2, bytes / 2), 0);
  EXPECT_EQ(CountResidentPages(memory, address, 512, 7), 0U);
  EXPECT_EQ(CountResidentPages(memory, address, 513, 7), 7U);
  EXPECT_EQ(munmap(begin, bytes / 2), 0);
}

}  // namespace
}  // namespace hakmem
