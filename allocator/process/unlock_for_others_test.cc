// UnlockForOthers beside a thread that waits for the lock. Calls of the kernel
// come by here first (--wrap).
#include <linux/futex.h>
#include <sys/syscall.h>

#include "allocator/process/futex_lock.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constinit FutexLock g_lock;
// Of this thread alone: who waits for the lock calls the kernel as ever.
constinit thread_local bool t_is_watched = false;
constinit unsigned g_waits_on_lock = 0;
constinit unsigned long g_held_wake[3] = {};

bool IsInLock(unsigned long address) {
  const auto begin = reinterpret_cast<unsigned long>(&g_lock);
  return address - begin < sizeof(g_lock);
}

}  // namespace
}  // namespace hakmem

extern "C" {

long __real__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e);

long __wrap__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e) {
  if (number == SYS_futex && hakmem::t_is_watched && hakmem::IsInLock(a)) {
    if ((b & FUTEX_CMD_MASK) == FUTEX_WAKE) {
      // The one who waits sleeps on: the lock stays free.
      hakmem::g_held_wake[0] = a;
      hakmem::g_held_wake[1] = b;
      hakmem::g_held_wake[2] = c;
      return 0;
    }
    ++hakmem::g_waits_on_lock;
  }
  return __real__ZN6hakmem13RawSystemCallElmmmmm(number, a, b, c, d, e);
}

}  // extern "C"

namespace hakmem {
namespace {

// On the lock's word it would take the wake of one who wants the lock, who then
// sleeps for good.
TEST(UnlockForOthers, DoesNotWaitWhereOthersWaitForTheLock) {
  g_lock.Lock();
  TestThread other([] {
    g_lock.Lock();
    g_lock.Unlock();
  });
  other.AwaitWaitFor(g_lock);
  t_is_watched = true;
  g_lock.UnlockForOthers();
  t_is_watched = false;
  EXPECT_EQ(g_waits_on_lock, 0U);
  ASSERT_NE(g_held_wake[0], 0U);
  __real__ZN6hakmem13RawSystemCallElmmmmm(SYS_futex, g_held_wake[0],
                                          g_held_wake[1], g_held_wake[2], 0, 0);
  other.Join();
}

}  // namespace
}  // namespace hakmem
