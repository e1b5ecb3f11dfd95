#include "allocator/platform/fake_virtual_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <csignal>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

class FakeVirtualMemoryTest : public testing::Test {
 protected:
  FakeVirtualMemoryTest()
      : page_(memory_.PageBytes()), base_(memory_.RegionRange().begin) {}

  Address Page(std::size_t index) const { return base_ + index * page_; }
  char& At(std::size_t index) const {
    return *reinterpret_cast<char*>(Page(index));
  }
  int Map(std::size_t first, std::size_t pages) {
    return memory_.MapAt(Page(first), pages * page_).error_number;
  }
  int Unmap(std::size_t first, std::size_t pages) {
    return memory_.Unmap(Page(first), pages * page_).error_number;
  }
  int Purge(std::size_t first, std::size_t pages) {
    return memory_.Purge(Page(first), pages * page_).error_number;
  }
  VmStatus Move(std::size_t from, std::size_t to, std::size_t pages,
                bool keep_source) {
    return memory_.Move(Page(from), Page(to), pages * page_, keep_source);
  }
  bool IsMapped(std::size_t first, std::size_t pages) const {
    return memory_.IsMapped(Page(first), pages * page_);
  }
  bool IsPurged(std::size_t first, std::size_t pages) const {
    return memory_.IsPurged(Page(first), pages * page_);
  }

  FakeVirtualMemory memory_;
  const std::size_t page_;
  const Address base_;
};

TEST_F(FakeVirtualMemoryTest, MapsRealMemoryAndKnowsIt) {
  ASSERT_EQ(Map(0, 4), 0);
  At(3) = 7;
  EXPECT_TRUE(IsMapped(0, 4));
  EXPECT_FALSE(IsMapped(0, 5));
  EXPECT_EQ(memory_.mapped_bytes(), 4 * page_);
  EXPECT_EQ(memory_.mappings(), 1u);

  ASSERT_EQ(Unmap(1, 1), 0);
  EXPECT_FALSE(IsMapped(1, 1));
  EXPECT_EQ(memory_.mapped_bytes(), 3 * page_);
  EXPECT_EQ(memory_.mappings(), 2u);
  EXPECT_EQ(At(3), 7);
}

TEST_F(FakeVirtualMemoryTest, RefusesToReplaceAMapping) {
  ASSERT_EQ(Map(1, 1), 0);
  EXPECT_EQ(Map(0, 3), EEXIST);
  EXPECT_EQ(memory_.mapped_bytes(), page_);
  EXPECT_EQ(memory_.refused(), 0u);
}

TEST_F(FakeVirtualMemoryTest, TellsWhatIsTaken) {
  ASSERT_EQ(Map(1, 1), 0);
  EXPECT_TRUE(memory_.IsTaken(Page(0), 2 * page_));
  EXPECT_FALSE(memory_.IsTaken(Page(0), page_));
  EXPECT_FALSE(memory_.IsTaken(Page(2), page_));
  EXPECT_EQ(memory_.mapped_bytes(), page_);
}

TEST_F(FakeVirtualMemoryTest, UnmapsWhatIsLeft) {
  Address address = 0;
  {
    FakeVirtualMemory memory;
    address = memory.RegionRange().begin + 100 * page_;
    ASSERT_TRUE(memory.MapAt(address, page_).ok());
  }
  unsigned char resident;
  EXPECT_EQ(mincore(reinterpret_cast<void*>(address), page_, &resident), -1);
}

TEST_F(FakeVirtualMemoryTest, RemembersPurges) {
  ASSERT_EQ(Map(0, 4), 0);
  At(1) = 7;
  EXPECT_FALSE(IsPurged(1, 1));
  ASSERT_EQ(Purge(1, 2), 0);
  EXPECT_EQ(At(1), 0);
  EXPECT_TRUE(IsPurged(1, 2));
  EXPECT_FALSE(IsPurged(0, 2));
  EXPECT_EQ(memory_.purged_bytes(), 2 * page_);

  ASSERT_EQ(Unmap(2, 1), 0);
  ASSERT_EQ(Map(2, 1), 0);
  EXPECT_FALSE(IsPurged(2, 1));
  EXPECT_TRUE(IsPurged(1, 1));
  memory_.ForgetPurges();
  EXPECT_FALSE(IsPurged(1, 1));
}

TEST_F(FakeVirtualMemoryTest, Moves) {
  ASSERT_EQ(Map(0, 4), 0);
  At(0) = 7;
  ASSERT_TRUE(Move(0, 8, 2, /*keep_source=*/false).ok());
  EXPECT_EQ(At(8), 7);
  EXPECT_FALSE(IsMapped(0, 1));
  EXPECT_TRUE(IsMapped(8, 2));

  ASSERT_TRUE(Move(8, 2, 2, /*keep_source=*/true).ok());
  EXPECT_EQ(At(2), 7);
  EXPECT_EQ(At(8), 0);
  EXPECT_EQ(memory_.mapped_bytes(), 4 * page_);
}

TEST_F(FakeVirtualMemoryTest, RefusesTheNthCallOnce) {
  memory_.RefuseCall(2, EPERM);
  EXPECT_EQ(Map(0, 1), 0);
  EXPECT_EQ(Purge(0, 1), EPERM);
  EXPECT_FALSE(IsPurged(0, 1));
  EXPECT_EQ(Purge(0, 1), 0);
  EXPECT_EQ(memory_.refused(), 1u);
}

TEST_F(FakeVirtualMemoryTest, RefusesFromTheNthCallOfAKindOn) {
  memory_.RefuseCall(2, ENOMEM, Refuse::kFromThenOn, VmCall::kMap);
  EXPECT_EQ(Map(0, 1), 0);
  EXPECT_EQ(Purge(0, 1), 0);
  EXPECT_EQ(Map(1, 1), ENOMEM);
  EXPECT_EQ(Unmap(0, 1), 0);
  EXPECT_EQ(Map(2, 1), ENOMEM);
  EXPECT_EQ(memory_.refused(), 2u);
  memory_.RefuseNothing();
  EXPECT_EQ(Map(1, 1), 0);
}

TEST_F(FakeVirtualMemoryTest, RefusedUnmapLeavesTheRange) {
  ASSERT_EQ(Map(0, 1), 0);
  At(0) = 7;
  memory_.RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kUnmap);
  EXPECT_EQ(Unmap(0, 1), ENOMEM);
  EXPECT_EQ(At(0), 7);
  EXPECT_TRUE(IsMapped(0, 1));
}

TEST_F(FakeVirtualMemoryTest, RefusedMoveMapsItsTargetAnew) {
  ASSERT_EQ(Map(0, 2), 0);
  ASSERT_EQ(Map(9, 1), 0);
  At(0) = 7;
  At(9) = 5;
  memory_.RefuseCall(1, EFAULT, Refuse::kOnce, VmCall::kMove);
  const VmStatus status = Move(0, 8, 2, false);
  EXPECT_EQ(status.error_number, EFAULT);
  EXPECT_FALSE(status.target_lost);
  EXPECT_EQ(At(0), 7);
  EXPECT_EQ(At(9), 0);
  EXPECT_TRUE(IsMapped(8, 2));
}

TEST_F(FakeVirtualMemoryTest, RefusedMoveCanLoseItsTarget) {
  ASSERT_EQ(Map(0, 1), 0);
  ASSERT_EQ(Map(8, 1), 0);
  memory_.LoseTargetOfRefusedMoves();
  memory_.RefuseCall(1, EFAULT);
  EXPECT_TRUE(Move(0, 8, 1, false).target_lost);
  EXPECT_EQ(memory_.lost(), 1U);
  EXPECT_TRUE(IsMapped(0, 1));
  EXPECT_FALSE(IsMapped(8, 1));
}

TEST_F(FakeVirtualMemoryTest, MoveCanLoseItsSource) {
  ASSERT_EQ(Map(0, 1), 0);
  At(0) = 7;
  memory_.LoseSourceOfMoves();
  const VmStatus status = Move(0, 8, 1, /*keep_source=*/true);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(status.source_lost);
  EXPECT_EQ(memory_.lost(), 1U);
  EXPECT_EQ(At(8), 7);
  EXPECT_FALSE(IsMapped(0, 1));
  // As the kernel, who is asked about a range that has lost a part.
  unsigned char resident[9];
  EXPECT_EQ(memory_.FindResident(Page(0), 9 * page_, resident).error_number,
            ENOMEM);
}

TEST_F(FakeVirtualMemoryTest, LimitsBytes) {
  memory_.LimitBytes(3 * page_);
  EXPECT_EQ(Map(0, 4), ENOMEM);
  EXPECT_EQ(Map(0, 3), 0);
  EXPECT_EQ(Map(8, 1), ENOMEM);
  EXPECT_EQ(memory_.refused(), 2u);
  // What does not grow is within any limit.
  EXPECT_TRUE(Move(0, 8, 1, /*keep_source=*/false).ok());
  // Neither the move nor its target has room.
  const VmStatus status = Move(1, 20, 1, /*keep_source=*/true);
  EXPECT_EQ(status.error_number, ENOMEM);
  EXPECT_TRUE(status.target_lost);
  memory_.LimitBytes(page_);
  EXPECT_EQ(Unmap(1, 2), 0);
}

TEST_F(FakeVirtualMemoryTest, LimitsMappings) {
  memory_.LimitMappings(2);
  EXPECT_EQ(Map(0, 3), 0);
  EXPECT_EQ(Map(8, 3), 0);
  EXPECT_EQ(Map(3, 1), 0);  // touches the first
  EXPECT_EQ(Map(5, 1), ENOMEM);
  EXPECT_EQ(Unmap(1, 1), ENOMEM);  // would split the first
  EXPECT_TRUE(IsMapped(0, 4));
  EXPECT_EQ(Unmap(0, 1), 0);
  EXPECT_EQ(memory_.refused(), 2u);
}

TEST_F(FakeVirtualMemoryTest, CountsCallsByKind) {
  ASSERT_EQ(Map(0, 2), 0);
  ASSERT_EQ(Purge(0, 1), 0);
  ASSERT_EQ(Purge(0, 1), 0);
  ASSERT_TRUE(Move(0, 8, 1, false).ok());
  ASSERT_EQ(Unmap(8, 1), 0);
  memory_.RefuseCall(1, ENOMEM);
  ASSERT_EQ(Unmap(1, 1), ENOMEM);
  EXPECT_EQ(memory_.calls(VmCall::kMap), 1u);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 2u);
  EXPECT_EQ(memory_.calls(VmCall::kMove), 1u);
  EXPECT_EQ(memory_.calls(VmCall::kUnmap), 2u);
  EXPECT_EQ(memory_.calls(VmCall::kNone), 6u);
}

TEST_F(FakeVirtualMemoryTest, TimeStandsStill) {
  EXPECT_EQ(memory_.NowMs(), 0u);
  memory_.SetNowMs(1000);
  memory_.AdvanceMs(5);
  EXPECT_EQ(memory_.NowMs(), 1005u);
}

TEST_F(FakeVirtualMemoryTest, SomethingHappensAfterALookAtTheClock) {
  memory_.RunAfterNextNow([this] { memory_.SetNowMs(memory_.NowMs() + 7); });
  EXPECT_EQ(memory_.NowMs(), 0u);
  EXPECT_EQ(memory_.NowMs(), 7u);
}

TEST_F(FakeVirtualMemoryTest, RandomFollowsTheSeed) {
  FakeVirtualMemory a(7);
  FakeVirtualMemory b(7);
  FakeVirtualMemory c(8);
  const std::uint64_t first = a.Random();
  EXPECT_EQ(first, b.Random());
  EXPECT_NE(first, c.Random());
}

TEST_F(FakeVirtualMemoryTest, RegionRangeCanBeSet) {
  memory_.SetRegionRange({page_, 3 * page_});
  EXPECT_EQ(memory_.RegionRange().begin, page_);
  EXPECT_EQ(memory_.RegionRange().end, 3 * page_);
}

using FakeVirtualMemoryDeathTest = FakeVirtualMemoryTest;

TEST_F(FakeVirtualMemoryDeathTest, WatchesTheContract) {
  ASSERT_EQ(Map(0, 2), 0);
  const auto aborts = testing::KilledBySignal(SIGABRT);
  const char* const unmapped = "check failed: mapped_\\.ContainsAll";
  EXPECT_EXIT(Purge(0, 3), aborts, unmapped);
  EXPECT_EXIT(Unmap(1, 2), aborts, unmapped);
  EXPECT_EXIT(Move(1, 8, 2, false), aborts, unmapped);
  EXPECT_EXIT(Move(0, 1, 2, false), aborts,
              "check failed: from \\+ bytes <= to");
  EXPECT_EXIT(memory_.MapAt(Page(4) + 1, page_), aborts,
              "check failed: address % page_bytes");
  EXPECT_EXIT(memory_.MapAt(Page(4), page_ - 1), aborts,
              "check failed: bytes % page_bytes");
  EXPECT_EXIT(memory_.MapAt(Page(4), 0), aborts, "check failed: bytes != 0u");
}

TEST_F(FakeVirtualMemoryTest, Protects) {
  ASSERT_EQ(Map(0, 4), 0);
  At(1) = 7;
  ASSERT_TRUE(memory_.Protect(Page(1), page_).ok());
  EXPECT_TRUE(memory_.IsProtected(Page(1), page_));
  EXPECT_FALSE(memory_.IsProtected(Page(0), 2 * page_));
  EXPECT_TRUE(memory_.IsAnyProtected(Page(0), 2 * page_));
  EXPECT_FALSE(memory_.IsAnyProtected(Page(2), 2 * page_));
  EXPECT_EQ(memory_.mappings(), 3u);
  EXPECT_EQ(memory_.mapped_bytes(), 4 * page_);
  EXPECT_DEATH(At(1) = 8, "");

  // A protected page at an end splits a mapping once, a whole one never.
  ASSERT_TRUE(memory_.Protect(Page(3), page_).ok());
  EXPECT_EQ(memory_.mappings(), 4u);
  ASSERT_EQ(Unmap(0, 1), 0);
  EXPECT_EQ(memory_.mappings(), 3u);
  ASSERT_EQ(Unmap(1, 1), 0);
  EXPECT_FALSE(memory_.IsAnyProtected(Page(0), 3 * page_));
  EXPECT_EQ(memory_.protected_bytes(), page_);
}

TEST_F(FakeVirtualMemoryTest, RefusesToProtect) {
  ASSERT_EQ(Map(0, 4), 0);
  memory_.RefuseCall(2, ENOMEM, Refuse::kOnce, VmCall::kProtect);
  EXPECT_TRUE(memory_.Protect(Page(0), page_).ok());
  EXPECT_EQ(memory_.Protect(Page(1), page_).error_number, ENOMEM);
  EXPECT_FALSE(memory_.IsAnyProtected(Page(1), page_));
  EXPECT_EQ(memory_.calls(VmCall::kProtect), 2u);
  memory_.LimitMappings(2);
  EXPECT_TRUE(memory_.Protect(Page(1), page_).ok());
  EXPECT_EQ(memory_.Protect(Page(3), page_).error_number, ENOMEM);
  EXPECT_EQ(memory_.refused(), 2u);
}

TEST_F(FakeVirtualMemoryTest, Unprotects) {
  ASSERT_TRUE(memory_.Reserve(Page(0), 3 * page_).ok());
  ASSERT_TRUE(memory_.Unprotect(Page(1), page_).ok());
  At(1) = 7;
  EXPECT_FALSE(memory_.IsAnyProtected(Page(1), page_));
  EXPECT_EQ(memory_.mappings(), 3u);
  memory_.RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kProtect);
  EXPECT_EQ(memory_.Unprotect(Page(0), page_).error_number, ENOMEM);
  EXPECT_TRUE(memory_.IsProtected(Page(0), page_));
  EXPECT_TRUE(memory_.Unprotect(Page(0), page_).ok());
}

TEST_F(FakeVirtualMemoryTest, Reserves) {
  ASSERT_TRUE(memory_.Reserve(Page(0), 2 * page_).ok());
  EXPECT_TRUE(memory_.IsProtected(Page(0), 2 * page_));
  EXPECT_EQ(Map(1, 2), EEXIST);
  ASSERT_EQ(Map(2, 1), 0);
  EXPECT_EQ(memory_.mappings(), 2u);
  EXPECT_DEATH(At(0) = 8, "");
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_EQ(memory_.Reserve(Page(4), page_).error_number, ENOMEM);
}

TEST_F(FakeVirtualMemoryTest, FindsResidentPages) {
  ASSERT_EQ(Map(0, 3), 0);
  At(1) = 7;
  unsigned char resident[3] = {9, 9, 9};
  ASSERT_TRUE(memory_.FindResident(Page(0), 3 * page_, resident).ok());
  EXPECT_EQ(resident[0], 0);
  EXPECT_EQ(resident[1], 1);
  EXPECT_EQ(resident[2], 0);
}

}  // namespace
}  // namespace hakmem
