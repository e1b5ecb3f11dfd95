#include "fuzz/baton.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "allocator/base/check.h"
#include "fuzz/misuse_trap.h"

namespace hakmem {
namespace {

constexpr unsigned kNobody = Baton::kLanes;
// How long a thread keeps its turn, at most; the schedule chooses.
constexpr std::uint32_t kQuanta[] = {1, 2, 5, 15, 50, 200, 1000, 1U << 20};
// So that a round ends.
constexpr std::uint32_t kMostSwitches = 3000;
// All threads wait for each other.
constexpr std::uint32_t kMostWaits = 2000;

struct State {
  std::mutex mutex;
  std::condition_variable changed[Baton::kLanes + 1];
  std::array<Baton::Task, Baton::kLanes> tasks;
  bool started = false;
  // Written by whoever has the turn, under mutex; kNobody: the caller of Run.
  unsigned turn = kNobody;
  unsigned unfinished = 0;  // bit per lane
  // The rest belongs to whoever has the turn.
  std::uint64_t random = 0;
  std::uint32_t most_points = 0;
  std::uint32_t points_left = 0;
  std::uint32_t switches = 0;
  std::uint32_t waits = 0;  // since a thread last went on without waiting
  bool given_up = false;
  bool only = false;
};

// Never destroyed: the threads still wait on it when the process ends.
State& state = *new State;

constinit thread_local unsigned lane = kNobody;

std::uint32_t NextRandom() {
  state.random = state.random * 6364136223846793005U + 1442695040888963407U;
  return static_cast<std::uint32_t>(state.random >> 33);
}

void NewQuantum() {
  state.points_left = state.switches < kMostSwitches
                          ? 1 + NextRandom() % state.most_points
                          : ~std::uint32_t{0};
}

// One of the threads that are not done, other than `after` if it can.
unsigned NextLane(unsigned after) {
  unsigned others = state.unfinished & ~(1U << after);
  if (others == 0) return state.unfinished != 0 ? after : kNobody;
  for (std::uint32_t skip = NextRandom() % Baton::kLanes;; --skip) {
    const auto first = static_cast<unsigned>(__builtin_ctz(others));
    others &= others - 1;
    if (skip == 0 || others == 0) return first;
  }
}

void PassTo(unsigned next, std::unique_lock<std::mutex>& hold) {
  ++state.switches;
  NewQuantum();
  state.turn = next;
  state.changed[next].notify_one();
  if (next == lane) return;
  state.changed[lane].wait(hold, [] { return state.turn == lane; });
}

void Switch() {
  const Baton::Outside outside;
  std::unique_lock<std::mutex> hold(state.mutex);
  PassTo(NextLane(lane), hold);
}

// One thread runs at a time: on one processor, passing the turn wakes no other.
void StayOnThisProcessor() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
  sched_setaffinity(0, sizeof(here), &here);
}

void Work(unsigned my_lane) {
  lane = my_lane;
  std::unique_lock<std::mutex> hold(state.mutex);
  for (;;) {
    state.changed[lane].wait(hold, [] { return state.turn == lane; });
    hold.unlock();
    state.tasks[lane]();
    hold.lock();
    state.unfinished &= ~(1U << lane);
    ++state.switches;
    state.waits = 0;
    NewQuantum();
    state.turn = NextLane(lane);
    state.changed[state.turn].notify_one();
  }
}

}  // namespace

void Baton::Run(std::span<const Task> tasks, std::uint32_t schedule) {
  std::unique_lock<std::mutex> hold(state.mutex);
  if (!state.started) {
    state.started = true;
    StayOnThisProcessor();
    for (unsigned i = 0; i < kLanes; ++i) std::thread(&Work, i).detach();
  }
  state.random = schedule;
  state.most_points = kQuanta[schedule % std::size(kQuanta)];
  state.switches = 0;
  state.waits = 0;
  state.given_up = false;
  for (unsigned i = 0; i < tasks.size(); ++i) {
    if (!tasks[i]) continue;
    state.tasks[i] = tasks[i];
    state.unfinished |= 1U << i;
  }
  NewQuantum();
  state.turn = NextLane(NextRandom() % kLanes);
  state.changed[state.turn].notify_one();
  state.changed[kNobody].wait(hold, [] { return state.turn == kNobody; });
}

void Baton::Point() {
  if (!preemptible_ || state.only || --state.points_left != 0) return;
  state.waits = 0;
  Switch();
}

bool Baton::Wait() {
  if (lane == kNobody) return false;
  if (state.given_up) MisuseTrap::Return();
  HAK_CHECK(!state.only);
  // Otherwise the threads wait for each other.
  HAK_CHECK_LT(++state.waits, kMostWaits);
  Switch();
  return true;
}

void Baton::GiveUp() { state.given_up = true; }

void Baton::BecomeOnly() { state.only = true; }

}  // namespace hakmem

// The compiler's calls, and those of the kernel (--wrap).
extern "C" {

#define HAKMEM_FUZZ_POINT(name)                                  \
  __attribute__((no_sanitize("coverage", "address"))) void name( \
      const void* address);                                      \
  void name(const void* /*address*/) { hakmem::Baton::Point(); }

HAKMEM_FUZZ_POINT(__sanitizer_cov_load1)
HAKMEM_FUZZ_POINT(__sanitizer_cov_load2)
HAKMEM_FUZZ_POINT(__sanitizer_cov_load4)
HAKMEM_FUZZ_POINT(__sanitizer_cov_load8)
HAKMEM_FUZZ_POINT(__sanitizer_cov_load16)
HAKMEM_FUZZ_POINT(__sanitizer_cov_store1)
HAKMEM_FUZZ_POINT(__sanitizer_cov_store2)
HAKMEM_FUZZ_POINT(__sanitizer_cov_store4)
HAKMEM_FUZZ_POINT(__sanitizer_cov_store8)
HAKMEM_FUZZ_POINT(__sanitizer_cov_store16)

#undef HAKMEM_FUZZ_POINT

long __real__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e);
long __wrap__ZN6hakmem13RawSystemCallElmmmmm(long number, unsigned long a,
                                             unsigned long b, unsigned long c,
                                             unsigned long d, unsigned long e) {
  const bool waits =
      number == SYS_sched_yield ||
      (number == SYS_futex && (b & FUTEX_CMD_MASK) == FUTEX_WAIT);
  if (waits && hakmem::Baton::Wait()) return 0;
  return __real__ZN6hakmem13RawSystemCallElmmmmm(number, a, b, c, d, e);
}

}  // extern "C"
