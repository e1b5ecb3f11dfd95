#include "allocator/process/helper_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Written by who starts a helper, and by each helper at its end.
HAK_AT_FORK constinit std::atomic<unsigned> g_helpers{0};
// The process whose first thread has ended; 0: none. Written by that thread,
// read by helpers. The child of a fork is another process.
constinit std::atomic<int> g_first_ended_in{0};

// How long the end of a process may take that only helpers are left of.
constexpr std::uint64_t kMostUnseenMs = 1000;

void* Run(void* argument) {
  pthread_setname_np(pthread_self(), "hakmem");
  reinterpret_cast<void (*)()>(argument)();
  g_helpers.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace

// Where a filter of system calls refuses a number, /proc tells, or nobody.
bool MayBeFirstThread() {
  const int thread_id = ThreadId();
  const int process_id = ProcessId();
  if (thread_id > 0 && process_id > 0) return thread_id == process_id;
  char link[64];
  const long bytes = SystemCall(SYS_readlinkat, AT_FDCWD, "/proc/thread-self",
                                link, sizeof(link));
  if (bytes <= 0) return true;
  // PROCESS/task/THREAD, whatever namespace has the numbers.
  std::string_view thread(link, static_cast<std::size_t>(bytes));
  const std::string_view process = thread.substr(0, thread.find('/'));
  // Not substr: its exception would be a symbol that libc does not have.
  thread.remove_prefix(thread.rfind('/') + 1);
  return process == thread;
}

int StartHelperThread(void (*body)()) {
  const ErrnoGuard guard;
  pthread_attr_t attributes;
  const int refused = pthread_attr_init(&attributes);
  if (refused != 0) return refused;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // A new thread starts with its creator's mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  g_helpers.fetch_add(1, std::memory_order_relaxed);
  const int error =
      pthread_create(&thread, &attributes, &Run, reinterpret_cast<void*>(body));
  if (error != 0) g_helpers.fetch_sub(1, std::memory_order_relaxed);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

bool OnlyHelpersAreLeft() {
  const int ended_in = g_first_ended_in.load(std::memory_order_relaxed);
  if (ended_in == 0 || ended_in != ProcessId()) return false;
  const ErrnoGuard guard;
  struct stat threads = {};
  // Who cannot tell must not keep the process for ever.
  if (stat("/proc/self/task", &threads) != 0) return true;
  // A folder has two links, and this one more for each thread. The first one
  // counts as long as there are others.
  return threads.st_nlink <= 3 + g_helpers.load(std::memory_order_relaxed);
}

void NoteThreadExit() {
  if (MayBeFirstThread()) {
    g_first_ended_in.store(ProcessId(), std::memory_order_relaxed);
  }
}

void ForgetHelpersAfterFork() { g_helpers.store(0, std::memory_order_relaxed); }

bool SleepAsHelper(std::uint64_t ms) {
  while (!OnlyHelpersAreLeft()) {
    SleepMs(std::min(ms, kMostUnseenMs));
    if (ms <= kMostUnseenMs) return true;
    ms -= kMostUnseenMs;
  }
  return false;
}

void SleepMs(std::uint64_t ms) {
  const timespec duration = {
      .tv_sec = static_cast<time_t>(ms / 1000),
      .tv_nsec = static_cast<long>(ms % 1000) * 1'000'000};
  SystemCall(SYS_nanosleep, &duration, nullptr);
}

}  // namespace hakmem
