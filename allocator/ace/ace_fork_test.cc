// What a fork's child finds of calls that were under way in other threads.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kHugeBytes = 300 * kMiB;

// A Huge block that another thread has unmapped, but not yet said so, is not
// unmapped again in the child: its place may be somebody else's.
TEST(AceForkTest, UnmapsNothingThatOthersHaveMapped)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  FakeVirtualMemory memory;
  WholeAce ace(memory);
  ace.Start(HeapOptions());
  const Address block = ace.GrantHuge(kHugeBytes, kSuperSlabBytes).address;
  std::atomic<bool> unmaps = false;
  std::atomic<bool> is_locked = false;
  memory.WatchLongCalls([&](VmCall call, Address, std::size_t) {
    if (call != VmCall::kUnmap) return;
    unmaps = true;
    AwaitThat([&] { return is_locked.load(); });
  });
  TestThread other([&] {
    FutexLock::Identify();
    EXPECT_TRUE(ReleaseLive(ace, block));
  });
  AwaitThat([&] { return unmaps.load(); });
  ace.LockForFork();
  is_locked = true;
  other.AwaitWaitFor(ace);
  ASSERT_TRUE(memory.MapBlock(block, kUnitBytes).ok());
  const pid_t child = fork();
  if (child == 0) {
    memory.WatchLongCalls(nullptr);
    ace.ResetLockAfterFork();
    EXPECT_TRUE(memory.IsMapped(block, kUnitBytes));
    EXPECT_EQ(ace.mapped_bytes(), 0U);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  EXPECT_TRUE(memory.Unmap(block, kUnitBytes).ok());
  ace.UnlockAfterFork();
  other.Join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hakmem
