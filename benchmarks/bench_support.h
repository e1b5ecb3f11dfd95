// What the benchmark programs share: arguments, random numbers, touching and
// the line of results that tools/compare.py reads.
//
// Owns: nothing. Called by: benchmarks/*.cc. Thread-safety: pure functions; a
// Random belongs to one thread.
#ifndef HAKMEM_BENCHMARKS_BENCH_SUPPORT_H_
#define HAKMEM_BENCHMARKS_BENCH_SUPPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace hakmem::bench {

struct Parameter {
  const char* name;
  std::uint64_t default_value;
  std::uint64_t* value;
};

// Reads whole numbers by position; left out means default. Ends the program
// with its usage when there are too many or one is not a number.
void ReadArguments(int argc, char** argv,
                   std::initializer_list<Parameter> parameters);

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

  // In [0, bound), for bounds far below 2^32, without a division.
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

// malloc that ends the program when there is no memory, and that the compiler
// does not know: else it would leave out a malloc and its free together.
void* Allocate(std::size_t size);

// The same for free.
void Free(void* block);

// Writes the first and the last byte, as a program that uses the block would.
inline void Touch(void* block, std::size_t size) {
  auto* const bytes = static_cast<volatile char*>(block);
  bytes[0] = 1;
  bytes[size - 1] = 1;
}

// Writes a byte of every 4 KiB.
inline void TouchPages(void* block, std::size_t size) {
  auto* const bytes = static_cast<volatile char*>(block);
  for (std::size_t at = 0; at < size; at += 4096) bytes[at] = 1;
}

class Stopwatch {
 public:
  double Seconds() const {
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    return elapsed.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Prints `NAME: X Mops/s, peak Y KiB, Z minor faults`, memory and faults being
// the whole process's.
void Report(const char* name, std::uint64_t operations, double seconds);

}  // namespace hakmem::bench

#endif  // HAKMEM_BENCHMARKS_BENCH_SUPPORT_H_
