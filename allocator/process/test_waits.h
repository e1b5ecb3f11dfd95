// Waits of tests. They end when something has happened, however long that
// takes: nothing here knows the time, and Bazel ends a test that hangs.
//
// Owns: nothing. Called by: tests. Thread-safety: any thread. SleepsIn and
// IsWaitingFor are safe in signal handlers.
#ifndef HAKMEM_ALLOCATOR_PROCESS_TEST_WAITS_H_
#define HAKMEM_ALLOCATOR_PROCESS_TEST_WAITS_H_

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

namespace hakmem {

// Until `condition` holds, which must come.
template <typename Condition>
void AwaitThat(const Condition& condition) {
  while (!condition()) sched_yield();
}

// Takes a while by a count, and lets others run once: to make something likely,
// not to wait for it. Each sched_yield may take long on a busy machine.
inline void Linger(int turns = 10'000) {
  for (volatile int turn = 0; turn < turns;) turn = turn + 1;
  sched_yield();
}

// /proc/THREAD/NAME, of a thread of this process or the first of another; ""
// where it cannot be read.
template <std::size_t kBytes>
std::string_view ReadProcOf(pid_t thread_id, std::string_view name,
                            char (&text)[kBytes]) {
  char path[64] = "/proc/";
  char* at = std::to_chars(path + 6, path + 20, thread_id).ptr;
  *at++ = '/';
  std::memcpy(at, name.data(), name.size());
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t length = read(fd, text, kBytes);
  close(fd);
  return {text, length < 0 ? 0 : static_cast<std::size_t>(length)};
}

// As in `ps`: 'R' runs, 'S' sleeps, 'Z' has ended. 0: it is not there.
inline char StateOf(pid_t thread_id) {
  char text[512];
  const std::string_view stat = ReadProcOf(thread_id, "stat", text);
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string_view::npos ? '\0' : stat[name_end + 2];
}

// Whether the thread sleeps in the kernel's call `number`, whose first argument
// is from `first` up to `end`. Where the kernel does not tell: whether it
// sleeps.
inline bool SleepsIn(pid_t thread_id, long number, std::uintptr_t first = 0,
                     std::uintptr_t end = UINTPTR_MAX) {
  char text[256];
  const std::string_view call = ReadProcOf(thread_id, "syscall", text);
  if (call.empty()) return StateOf(thread_id) == 'S';
  long found = -1;
  const char* const text_end = call.data() + call.size();
  const char* const after = std::from_chars(call.data(), text_end, found).ptr;
  // A sleep that the process's own stop has interrupted.
  if (found == SYS_restart_syscall) return number == SYS_nanosleep;
  if (found != number || text_end - after < 4) return false;
  std::uintptr_t argument = 0;
  std::from_chars(after + 3, text_end, argument, 16);  // behind " 0x"
  return argument >= first && argument < end;
}

// Whether the thread sleeps until a word of `object`, a lock, is changed.
template <typename Object>
bool IsWaitingFor(pid_t thread_id, const Object& object) {
  const auto first = reinterpret_cast<std::uintptr_t>(&object);
  return SleepsIn(thread_id, SYS_futex, first, first + sizeof(object));
}

// A thread of which a test can tell whether it waits.
class TestThread {
 public:
  template <typename Body>
  explicit TestThread(Body body)
      : thread_([this, body = std::move(body)]() mutable {
          id_.store(gettid());
          body();
          has_ended_.store(true);
        }) {}
  ~TestThread() { Join(); }

  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  // 0: it has not begun.
  pid_t id() const { return id_.load(); }
  bool has_ended() const { return has_ended_.load(); }

  template <typename Object>
  bool WaitsFor(const Object& object) const {
    return id() != 0 && IsWaitingFor(id(), object);
  }
  // Until it waits for a word of `object`, or has ended.
  template <typename Object>
  void AwaitWaitFor(const Object& object) const {
    AwaitThat([&] { return has_ended() || WaitsFor(object); });
  }
  // Until it sleeps in the call, or has ended.
  void AwaitSleepIn(long number) const {
    AwaitThat(
        [&] { return has_ended() || (id() != 0 && SleepsIn(id(), number)); });
  }

 private:
  // Written by the thread, read by all.
  std::atomic<pid_t> id_{0};
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_TEST_WAITS_H_
