#include "allocator/platform/libc_functions.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>

#include "allocator/base/compiler.h"
#include "allocator/base/sanitizer.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/platform/linux_virtual_memory.h"

namespace hakmem {
namespace {

using Unmap = int (*)(void*, std::size_t);
using Advise = int (*)(void*, std::size_t, int);
using Clock = int (*)(clockid_t, timespec*);

// By the library's table of addresses, which those who listen may change.
int UnmapByName(void* begin, std::size_t bytes) { return munmap(begin, bytes); }
int AdviseByName(void* begin, std::size_t bytes, int advice) {
  return madvise(begin, bytes, advice);
}

// A sanitizer's functions stand before libc's, and must hear of what goes.
constexpr bool kAlwaysByName = kAddressSanitizer || kThreadSanitizer;

// Null: the kernel is called by number. Written once, at the start, and sealed;
// read by all threads.
struct alignas(kSealedBytes) Functions {
  std::atomic<Unmap> unmap{kAlwaysByName ? &UnmapByName : nullptr};
  std::atomic<Advise> advise{kAlwaysByName ? &AdviseByName : nullptr};
  std::atomic<Clock> clock{nullptr};
  // Where a thread's record has its id; 0: not known.
  std::atomic<std::uint32_t> thread_id{0};
};
constinit Functions g_functions;

// What clocks show in strict mode.
struct StoppedClocks {
  std::uint64_t wall_ns;
  std::uint64_t monotonic_ns;
};
constinit thread_local StoppedClocks t_stopped HAK_TLS_INITIAL_EXEC = {};

// libc's own, if another stands before it. A program without a dynamic linker
// has what it was linked with.
template <typename Function>
Function Choose(std::uintptr_t own, Function first, Function by_name) {
  return own == 0 || own == reinterpret_cast<std::uintptr_t>(first)
             ? by_name
             : reinterpret_cast<Function>(own);
}

// What glibc tells libthread_db of a field: bits, number, place.
std::uint32_t PlaceOfThreadId(std::uintptr_t description) {
  if (description == 0) return 0;
  const auto* const field = reinterpret_cast<const std::uint32_t*>(description);
  return field[0] == 32 && field[1] == 1 ? field[2] : 0;
}

}  // namespace

void FindLibcFunctions(std::uintptr_t (*find)(const char* name)) {
  g_functions.clock.store(
      Choose<Clock>(find("clock_gettime"), &clock_gettime, &clock_gettime),
      std::memory_order_relaxed);
  g_functions.thread_id.store(PlaceOfThreadId(find("_thread_db_pthread_tid")),
                              std::memory_order_relaxed);
  if constexpr (!kAlwaysByName) {
    g_functions.unmap.store(
        Choose<Unmap>(find("munmap"), &munmap, &UnmapByName),
        std::memory_order_relaxed);
    g_functions.advise.store(
        Choose<Advise>(find("madvise"), &madvise, &AdviseByName),
        std::memory_order_relaxed);
  }
  SealObject(&g_functions, sizeof(g_functions));
}

int UnmapAndTell(Address address, std::size_t bytes) {
  const Unmap unmap = g_functions.unmap.load(std::memory_order_relaxed);
  if (unmap == nullptr || t_is_strict) {
    return ErrorOf(SystemCall(SYS_munmap, address, bytes));
  }
  const ErrnoGuard guard;
  return unmap(reinterpret_cast<void*>(address), bytes) == 0 ? 0 : errno;
}

int AdviseAndTell(Address address, std::size_t bytes, int advice) {
  const Advise advise = g_functions.advise.load(std::memory_order_relaxed);
  if (advise == nullptr || t_is_strict) {
    return ErrorOf(SystemCall(SYS_madvise, address, bytes, advice));
  }
  const ErrnoGuard guard;
  void* const begin = reinterpret_cast<void*>(address);
  return advise(begin, bytes, advice) == 0 ? 0 : errno;
}

// The kernel refuses what does not begin with a page, and who listens takes it
// for a loss: libraries forget what they know of the range before the call.
void TellOfLoss(Address address, std::size_t bytes) {
  if (g_functions.advise.load(std::memory_order_relaxed) == nullptr) return;
  AdviseAndTell(address - 1, bytes + 1, MADV_DONTNEED);
}

int RecordedThreadId() {
  const std::uint32_t place =
      g_functions.thread_id.load(std::memory_order_relaxed);
  if (place == 0) return 0;
  const auto record = reinterpret_cast<std::uintptr_t>(pthread_self());
  return *reinterpret_cast<const int*>(record + place);
}

std::uint64_t ReadClock(clockid_t clock) {
  if (t_is_strict) {
    return clock == CLOCK_REALTIME ? t_stopped.wall_ns : t_stopped.monotonic_ns;
  }
  timespec now = {};
  const Clock read = g_functions.clock.load(std::memory_order_relaxed);
  if (read == nullptr) {
    SystemCall(SYS_clock_gettime, clock, &now);
  } else {
    const ErrnoGuard guard;
    read(clock, &now);
  }
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void SetStrictMode(bool is_strict) {
  t_stopped = {.wall_ns = ReadClock(CLOCK_REALTIME),
               .monotonic_ns = ReadClock(CLOCK_MONOTONIC)};
  t_is_strict = is_strict;
}

}  // namespace hakmem
