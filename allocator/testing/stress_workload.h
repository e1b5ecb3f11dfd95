// The stress workload: lanes that allocate, check, hand over and free blocks,
// each on one thread after another, while some of them fork.
//
// Owns: the threads. Called by: stress_main and the stress tests.
// Thread-safety: one run at a time.
#ifndef HAKMEM_ALLOCATOR_TESTING_STRESS_WORKLOAD_H_
#define HAKMEM_ALLOCATOR_TESTING_STRESS_WORKLOAD_H_

#include <atomic>
#include <cstddef>

#include "allocator/testing/stress_lane.h"
#include "allocator/testing/stress_target.h"

namespace hakmem::stress {

struct Outcome {
  Counters counters;
  std::size_t peak_bytes = 0;
  double seconds = 0;
};

// Runs until a bound of `options` is reached or `stop` becomes true; then
// checks and frees every block. Aborts, with seed and operation, on the first
// damage.
Outcome RunStress(const Options& options, Target& target,
                  const std::atomic<bool>& stop);

}  // namespace hakmem::stress

#endif  // HAKMEM_ALLOCATOR_TESTING_STRESS_WORKLOAD_H_
