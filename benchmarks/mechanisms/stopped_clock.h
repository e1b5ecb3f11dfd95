// A clock of the process that goes on when the program says so: what an
// allocator does by the time is then the same in every run, and nobody waits.
//
// Owns: the process's clock. Called by: patterns.cc, the patterns.
// Thread-safety: StopClock() before there are threads; one thread at a time
// passes time, any may look.
#ifndef HAKMEM_BENCHMARKS_MECHANISMS_STOPPED_CLOCK_H_
#define HAKMEM_BENCHMARKS_MECHANISMS_STOPPED_CLOCK_H_

#include <cstdint>

namespace hakmem::bench {

// Puts a function of the program's into the place of the vDSO's, which is where
// libc's clock_gettime ends, whoever calls it. False: there is no vDSO, as
// under valgrind, and the clock goes on.
bool StopClock();

void PassUs(std::uint64_t microseconds);

}  // namespace hakmem::bench

#endif  // HAKMEM_BENCHMARKS_MECHANISMS_STOPPED_CLOCK_H_
