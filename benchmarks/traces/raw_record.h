// One call of a program as the converter takes it.
//
// Owns: nothing. Called by: hakmem trace, converter. Thread-safety: none.
// Invariants:
//   R1: the records' order is one in which the calls may have happened: the
//       record of a block's release is before that of the next block at its
//       address, and the record of its allocation before that of its release.
#ifndef HAKMEM_BENCHMARKS_TRACES_RAW_RECORD_H_
#define HAKMEM_BENCHMARKS_TRACES_RAW_RECORD_H_

#include <cstdint>

namespace hakmem::traces {

enum class Call : std::uint32_t {
  kMalloc = 1,
  kCalloc = 2,
  kAligned = 3,
  kRealloc = 4,
  kFree = 5,
};

// Only calls that did something: no failures, no free(nullptr).
struct RawRecord {
  std::uint64_t address;   // the block; 0 when realloc released it
  std::uint64_t argument;  // alignment of kAligned, the old block of kRealloc
  std::uint64_t size;
  std::uint32_t thread;  // in the order of their first call
  Call call;
};
static_assert(sizeof(RawRecord) == 32);

}  // namespace hakmem::traces

#endif  // HAKMEM_BENCHMARKS_TRACES_RAW_RECORD_H_
