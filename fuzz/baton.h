// A deterministic scheduler: several threads, of which exactly one moves at a
// time, and which one that is follows from a number alone.
//
// Owns: the threads, which live as long as the process. Called by:
// cross_thread_fuzz. Thread-safety: Run from one thread; the static functions
// from the tasks.
//
// Within Inside, each load and each store of the code under test is a point at
// which another thread may go on (the compiler calls __sanitizer_cov_load… and
// …_store…: interleaved = True in fuzz/BUILD), and so is each system call that
// would wait for another thread: futex and sched_yield never reach the kernel.
//
// Invariants:
//   BT1: the code under test runs on the thread whose turn it is, on no other.
//   BT2: no thread gives its turn away outside of Inside; so what the tasks do
//       there is atomic.
#ifndef HAKMEM_FUZZ_BATON_H_
#define HAKMEM_FUZZ_BATON_H_

#include <cstdint>
#include <functional>
#include <span>

namespace hakmem {

class Baton {
 public:
  static constexpr unsigned kLanes = 4;
  using Task = std::function<void()>;

  // Carries out task i on thread i, all of them at once; at most kLanes. An
  // empty one is left out.
  static void Run(std::span<const Task> tasks, std::uint32_t schedule);

  // While it lives, the thread may lose its turn.
  class Inside {
   public:
    Inside() { preemptible_ = true; }
    ~Inside() { preemptible_ = false; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };
  // The same the other way round, within Inside: for a part that must not be
  // interrupted.
  class Outside {
   public:
    Outside() : was_(preemptible_) { preemptible_ = false; }
    ~Outside() { preemptible_ = was_; }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    const bool was_;
  };

  // Another thread may go on.
  [[clang::no_sanitize("coverage")]] static void Point();
  // Another thread must go on. True: there was one; false: the caller is not
  // one of the threads of Run. A process whose threads all wait ends by a
  // failed check.
  static bool Wait();
  // What would have been waited for will not come: a task ended in the middle,
  // by a report. Those that wait from now on end by returning to their
  // MisuseTrap.
  static void GiveUp();
  // In the child of a fork: no other thread is left.
  static void BecomeOnly();

 private:
  static constinit inline thread_local bool preemptible_ = false;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_BATON_H_
