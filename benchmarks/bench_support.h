// What the benchmark programs share: arguments, random numbers, touching,
// threads that start together, and the line of results that tools/bench reads.
//
// Owns: nothing. Called by: benchmarks/*.cc. Thread-safety: pure functions; an
// object belongs to one thread.
#ifndef HAKMEM_BENCHMARKS_BENCH_SUPPORT_H_
#define HAKMEM_BENCHMARKS_BENCH_SUPPORT_H_

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <thread>
#include <vector>

namespace hakmem::bench {

// --- Arguments --------------------------------------------------------------

// A whole number, or one of a few words; `value` is then the word's index.
struct Parameter {
  Parameter(const char* its_name, std::uint64_t its_default,
            std::uint64_t* its_value, std::uint64_t its_minimum = 1,
            std::uint64_t its_maximum = 4'000'000'000)
      : name(its_name),
        value(its_value),
        default_value(its_default),
        minimum(its_minimum),
        maximum(its_maximum) {}
  Parameter(const char* its_name, std::initializer_list<const char*> its_words,
            std::uint64_t* its_value)
      : name(its_name), value(its_value), words(its_words) {}

  const char* name;
  std::uint64_t* value;
  std::uint64_t default_value = 0;
  std::uint64_t minimum = 0;
  // Random::Below() needs bounds below 2^32.
  std::uint64_t maximum = 0;
  std::vector<const char*> words;
};

// Reads arguments by position; left out means default, or the first word. Ends
// the program with status 2 and its usage when one is wrong or too many.
void ReadArguments(int argc, char** argv,
                   std::initializer_list<Parameter> parameters);

// The same for what only the program itself can check: ends it with status 2.
[[noreturn]] void RejectArguments(const char* program, const char* sentence);

// --- Work -------------------------------------------------------------------

// SplitMix64: a few instructions, so that the allocator is what is measured.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t value = state_;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
  }

  // In [0, bound), for bounds up to 2^32, without a division.
  std::size_t Below(std::size_t bound) {
    return static_cast<std::size_t>(((Next() >> 32) * bound) >> 32);
  }

  // In [low, high].
  std::size_t Between(std::size_t low, std::size_t high) {
    return low + Below(high - low + 1);
  }

 private:
  std::uint64_t state_;
};

// The block, or the end of the program when there is no memory.
void* Check(void* block, std::size_t size);

// malloc and free that the compiler does not know: else it would leave out a
// malloc and its free together.
void* Allocate(std::size_t size);
void Free(void* block);

// Writes the first and the last byte, as a program that uses the block would.
inline void Touch(void* block, std::size_t size) {
  auto* const bytes = static_cast<volatile char*>(block);
  bytes[0] = 1;
  bytes[size - 1] = 1;
}

// Writes a byte of every 4 KiB, and the last.
inline void TouchPages(void* block, std::size_t size) {
  auto* const bytes = static_cast<volatile char*>(block);
  for (std::size_t at = 0; at < size; at += 4096) bytes[at] = 1;
  bytes[size - 1] = 1;
}

inline void* AllocateTouched(std::size_t size) {
  void* const block = Allocate(size);
  Touch(block, size);
  return block;
}

// `iterations` times, empties a random slot when it is full, else fills it.
template <class Fill, class Empty>
void ToggleSlots(std::vector<void*>& table, Random& random,
                 std::uint64_t iterations, const Fill& fill,
                 const Empty& empty) {
  for (std::uint64_t i = 0; i < iterations; ++i) {
    void*& slot = table[random.Below(table.size())];
    if (slot != nullptr) {
      empty(slot);
      slot = nullptr;
    } else {
      slot = fill();
    }
  }
}

// How often ToggleSlots() turns an empty table before about half is full.
inline std::uint64_t WarmUpOf(std::uint64_t iterations, std::uint64_t slots) {
  return iterations / 8 + 2 * slots;
}

// --- Measuring ---------------------------------------------------------------

// What has happened since its construction, until Stop(), in the whole process
// and in the children that it has waited for.
class Phase {
 public:
  Phase();
  void Stop();
  double seconds() const { return seconds_; }
  double system_seconds() const { return system_seconds_; }
  long minor_faults() const { return minor_faults_; }

 private:
  std::chrono::steady_clock::time_point start_;
  double seconds_ = 0;
  double system_seconds_ = 0;
  long minor_faults_ = 0;
};

// A further figure of the result. The key is one of the names that
// tools/bench knows: lower-case letters and underscores.
struct Figure {
  const char* key;
  double value;
};

// Prints the line `result: {…}`; `phase` has been stopped.
void Report(const Phase& phase, std::uint64_t operations,
            std::initializer_list<Figure> figures = {});

// Bytes of memory that the process holds now, and has held at most. Neither
// allocates, so that a look does not disturb.
std::size_t ResidentBytes();
std::size_t PeakBytes();

// The resident bytes after 0.8 s in which the calling thread hardly works, as a
// server's when no requests come: time for an allocator to give back.
std::size_t SettledBytes();

// body(0) … body(threads - 1), each on its own thread; one runs right here,
// because an allocator may know that a process has only one thread.
template <class Body>
void OnThreads(std::uint64_t threads, const Body& body) {
  if (threads == 1) return body(std::uint64_t{0});
  std::vector<std::thread> workers;
  for (std::uint64_t i = 0; i < threads; ++i) {
    workers.emplace_back([&body, i] { body(i); });
  }
  for (std::thread& worker : workers) worker.join();
}

// warm_up(i) on each thread i and, when all are done, work(i) on the same
// threads; then clean_up(i). The phase is that of `work`.
template <class WarmUp, class Work, class CleanUp>
Phase MeasureThreads(std::uint64_t threads, const WarmUp& warm_up,
                     const Work& work, const CleanUp& clean_up) {
  Phase phase;
  bool working = false;
  // Called by one thread while the others wait for it.
  const auto next = [&phase, &working]() noexcept {
    if (working) {
      phase.Stop();
    } else {
      phase = Phase();
    }
    working = !working;
  };
  std::barrier gate(static_cast<std::ptrdiff_t>(threads), next);
  OnThreads(threads, [&](std::uint64_t i) {
    warm_up(i);
    gate.arrive_and_wait();
    work(i);
    gate.arrive_and_wait();
    clean_up(i);
  });
  return phase;
}

}  // namespace hakmem::bench

#endif  // HAKMEM_BENCHMARKS_BENCH_SUPPORT_H_
