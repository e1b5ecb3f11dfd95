// From a recording to a compact trace: addresses become numbers of blocks,
// what does not fit together is left out, and the rest may be cut.
//
// Owns: nothing. Called by: hakmem trace and tests. Thread-safety: none.
// Invariants:
//   C1: the trace is valid whatever the records are: each block is allocated,
//       then reallocated any number of times, then freed at most once.
//   C2: a number is used again first by the thread that freed the block, so
//       that reuse seldom makes one thread wait for another when replayed.
#ifndef HAKMEM_BENCHMARKS_TRACES_CONVERTER_H_
#define HAKMEM_BENCHMARKS_TRACES_CONVERTER_H_

#include <cstdint>
#include <span>
#include <string>

#include "benchmarks/traces/raw_record.h"

namespace hakmem::traces {

struct Conversion {
  std::string trace;
  std::uint64_t events = 0;
  std::uint64_t left_out = 0;  // frees of blocks that nobody allocated
};

// At most `max_events`, the first ones.
Conversion Convert(std::span<const RawRecord> records,
                   std::uint64_t max_events);

}  // namespace hakmem::traces

#endif  // HAKMEM_BENCHMARKS_TRACES_CONVERTER_H_
