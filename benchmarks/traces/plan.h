// A trace made ready to be replayed: each thread's steps in a row, and for
// each step whose turn it is at its block.
//
// Owns: its tables, in memory that is not the allocator's. Called by: the
// player and its tests. Thread-safety: read-only once loaded.
// Invariants:
//   P1: the turns of a block count 0, 1, 2, … in the trace's order over all
//       threads; a step may be done when its block's turn has come.
//   P2: steps in the trace's order never wait, so threads that wait for turns
//       never wait in a circle.
//   P3: a block is allocated before it is reallocated or freed.
#ifndef HAKMEM_BENCHMARKS_TRACES_PLAN_H_
#define HAKMEM_BENCHMARKS_TRACES_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "benchmarks/traces/mapped_memory.h"
#include "benchmarks/traces/trace_format.h"

namespace hakmem::traces {

struct Step {
  std::uint32_t block;
  std::uint32_t turn;
  std::uint64_t size : 48;
  std::uint64_t op : 8;
  std::uint64_t alignment_log2 : 8;
};
static_assert(sizeof(Step) == 16);

class Plan {
 public:
  // Null when it worked, else what is wrong with the trace.
  const char* Load(std::span<const std::uint8_t> trace);

  const Header& header() const { return header_; }
  std::span<const Step> steps(std::uint32_t thread) const {
    return steps_.items().subspan(
        first_step_[thread], first_step_[thread + 1] - first_step_[thread]);
  }
  // The most bytes that are asked for and not yet freed at any time.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct State {
    std::uint64_t size;
    std::uint32_t turns;
    bool alive;
  };

  const char* Count(std::span<const std::uint8_t> trace);
  const char* Fill(std::span<const std::uint8_t> trace);
  bool Follow(const Event& event, State& state);

  Header header_;
  MappedArray<Step> steps_;
  MappedArray<std::uint64_t> first_step_;  // by thread, and one past the last
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace hakmem::traces

#endif  // HAKMEM_BENCHMARKS_TRACES_PLAN_H_
