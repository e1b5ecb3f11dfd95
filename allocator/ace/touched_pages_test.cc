// What is known of a range's pages saves questions to the kernel.

#include "allocator/ace/touched_pages.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/block_use.h"

namespace hakmem {
namespace {

class KnownPagesTest : public testing::Test {
 protected:
  KnownPagesTest()
      : page_(memory_.PageBytes()), begin_(memory_.RegionRange().begin) {
    EXPECT_TRUE(memory_.MapAt(begin_, kPages * page_).ok());
  }

  // Its start and its last byte, as a canary does.
  void Touch(std::size_t pages, std::size_t of_pages = kPages) {
    char* const range = reinterpret_cast<char*>(begin_);
    std::memset(range, 7, pages * page_);
    range[of_pages * page_ - 1] = 7;
  }
  // Returns how many questions it took. No page but `in_memory_` many is in
  // memory then, and these are clear.
  std::uint64_t Clear(std::size_t of_pages = kPages, bool fresh = false) {
    const std::uint64_t before = memory_.resident_looks();
    pages_.ClearTouched(begin_, of_pages * page_, fresh, &known_);
    const std::uint64_t looks = memory_.resident_looks() - before;
    std::vector<unsigned char> resident(kPages);
    EXPECT_TRUE(
        memory_.FindResident(begin_, kPages * page_, resident.data()).ok());
    in_memory_ = 0;
    for (std::size_t page = 0; page < kPages; ++page) {
      if (resident[page] == 0) continue;
      ++in_memory_;
      EXPECT_EQ(
          FirstNonZero(reinterpret_cast<void*>(begin_ + page * page_), page_),
          page_);
    }
    return looks;
  }
  std::uint64_t Purges() const { return memory_.calls(VmCall::kPurge); }

  static constexpr std::size_t kPages = 100;
  FakeVirtualMemory memory_;
  TouchedPages pages_{memory_};
  const std::size_t page_;
  const Address begin_;
  PagesInMemory known_;
  std::size_t in_memory_ = 0;
};

TEST_F(KnownPagesTest, OfFiveTimesOneIsAsked) {
  std::uint64_t looks = 0;
  for (int i = 0; i < 50; ++i) {
    Touch(3);
    looks += Clear();
    ASSERT_EQ(in_memory_, 4U) << i;
  }
  // Twice at first.
  EXPECT_EQ(looks, 11U);
}

TEST_F(KnownPagesTest, WhatGrowsIsAskedAboutAndStaysInMemory) {
  std::uint64_t looks = 0;
  for (const std::size_t pages : {1, 3, 7, 11, 20, 33, 40, 60}) {
    Touch(pages);
    looks += Clear();
    EXPECT_EQ(in_memory_, pages + 1);
  }
  EXPECT_EQ(looks, 8U);
}

TEST_F(KnownPagesTest, WhatIsInMemoryAsAWholeIsAskedAboutOnce) {
  std::uint64_t looks = 0;
  for (int i = 0; i < 50; ++i) {
    Touch(kPages);
    looks += Clear();
    ASSERT_EQ(in_memory_, kPages) << i;
  }
  EXPECT_EQ(looks, 1U);
  EXPECT_EQ(Purges(), 0U);
}

// Nothing is given back in vain for long, at whatever turns it is used.
TEST_F(KnownPagesTest, WhatIsUsedByTurnsStaysInMemory) {
  for (const int turn : {2, 3, 4, 7}) {
    known_ = {};
    EXPECT_TRUE(memory_.Purge(begin_, kPages * page_).ok());
    const std::uint64_t before = Purges();
    for (int i = 1; i < 100; ++i) {
      Touch(i % turn == 0 ? kPages : 1);
      Clear();
    }
    EXPECT_EQ(in_memory_, kPages) << turn;
    EXPECT_LT(Purges() - before, 5U * static_cast<unsigned>(turn)) << turn;
  }
}

TEST_F(KnownPagesTest, WhereThereAreMoreGapsEachTimeIsAsked) {
  std::uint64_t looks = 0;
  for (int i = 0; i < 10; ++i) {
    Touch(1);
    reinterpret_cast<char*>(begin_)[50 * page_] = 7;
    looks += Clear();
    ASSERT_EQ(in_memory_, 3U) << i;
  }
  EXPECT_EQ(looks, 10U);
}

// The length is what the program asked for, and changes.
TEST_F(KnownPagesTest, AnotherLengthIsClearedAsAWhole) {
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t pages = 40 + i * 37 % 61;
    Touch(i % 3 == 0 ? pages / 2 : 1, pages);
    Clear(pages);
  }
}

TEST_F(KnownPagesTest, AFreshRangeIsAskedAbout) {
  Touch(kPages);
  EXPECT_EQ(Clear(), 1U);
  EXPECT_TRUE(memory_.Purge(begin_, kPages * page_).ok());
  Touch(1);
  EXPECT_EQ(Clear(kPages, /*fresh=*/true), 1U);
  EXPECT_EQ(in_memory_, 2U);
}

TEST_F(KnownPagesTest, WhatTheKernelDoesNotTakeBackIsCleared) {
  for (int i = 0; i < 2; ++i) {
    Touch(1);
    Clear();
  }
  Touch(kPages);
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                     VmCall::kPurge);
  Clear();
  EXPECT_EQ(in_memory_, kPages);
  memory_.RefuseNothing();
}

}  // namespace
}  // namespace hakmem
