// What the patterns share: threads that run by turns, the measured part, and
// the figures that mechanisms_test.py reads.
//
// Owns: nothing. Called by: benchmarks/mechanisms/*.cc. Thread-safety: one
// thread runs at a time.
#ifndef HAKMEM_BENCHMARKS_MECHANISMS_PATTERNS_H_
#define HAKMEM_BENCHMARKS_MECHANISMS_PATTERNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "benchmarks/bench_support.h"
#include "benchmarks/mechanisms/stopped_clock.h"

namespace hakmem::bench {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

struct Pattern {
  const char* name;
  void (*run)();
};

// Runs the pattern that the program's argument names. Returns main's result.
int RunPattern(int argc, char** argv, const std::vector<Pattern>& patterns);

extern const std::vector<Pattern> kSmallPatterns;
extern const std::vector<Pattern> kLargePatterns;
extern const std::vector<Pattern> kRunPatterns;
extern const std::vector<Pattern> kThreadPatterns;

// Prints `figure KEY VALUE`, without an allocation.
void PrintFigure(const char* key, std::uint64_t value);

// Anonymous memory of the process in KiB, page by page.
std::uint64_t HeldKiB();

// The most addresses that the process has had, in KiB.
std::uint64_t VirtualPeakKiB();

std::uint64_t MinorFaults();

// Work without its type.
struct Work {
  void (*call)(void* what, std::size_t i);
  void* what;
};

// One measured operation or many; callgrind counts inside it by its name. It
// begins and ends with a call of getrusage, which strace shows. One must not
// lie within another.
extern "C" void Measured_pattern(const Work& work, std::size_t i);

template <class Body>
Work WorkOf(Body& body) {
  return {[](void* what, std::size_t i) { (*static_cast<Body*>(what))(i); },
          &body};
}

template <class Body>
void Measure(Body body) {
  auto with_index = [&body](std::size_t) { body(); };
  Measured_pattern(WorkOf(with_index), 0);
}

// Half decay delays in which the thread makes 600 small calls each.
void Idle(std::uint64_t intervals);

// How many operations the measured parts had.
void CountOperations(std::uint64_t count);

// Threads of which one runs at a time, in an order that the main thread says:
// so each run of a pattern is the same.
class Crew {
 public:
  explicit Crew(std::size_t threads);
  ~Crew() { End(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // body(i) on thread i.
  template <class Body>
  void On(std::size_t i, Body body) {
    work_ = WorkOf(body);
    Turn(i);
  }

  // body(0), body(1) … each on its own thread.
  template <class Body>
  void OnEach(Body body) {
    for (std::size_t i = 0; i < threads_.size(); ++i) On(i, body);
  }

  // The threads end one after the other.
  void End();

 private:
  void Turn(std::size_t i);
  void Live(std::size_t i);

  std::vector<std::unique_ptr<std::binary_semaphore>> may_run_;
  std::binary_semaphore has_run_{0};
  Work work_{};
  std::vector<std::thread> threads_;
};

}  // namespace hakmem::bench

#endif  // HAKMEM_BENCHMARKS_MECHANISMS_PATTERNS_H_
