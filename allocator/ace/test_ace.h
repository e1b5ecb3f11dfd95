// ACE and its parts, for tests.
//
// Owns: all of it. Called by: tests, fuzzers. Thread-safety: as Ace.
#ifndef HAKMEM_ALLOCATOR_ACE_TEST_ACE_H_
#define HAKMEM_ALLOCATOR_ACE_TEST_ACE_H_

#include "allocator/ace/ace.h"        // IWYU pragma: export
#include "allocator/ace/ace_parts.h"  // IWYU pragma: export
#include "allocator/platform/virtual_memory.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {

class WholeAce : public Ace {
 public:
  explicit WholeAce(VirtualMemory& memory, ZoneRanges* ranges = nullptr)
      : Ace(memory, parts_), parts_(*this, ranges) {}
  Statistics Snapshot() {
    Statistics statistics;
    AddStatistics(statistics);
    return statistics;
  }

 private:
  AceParts parts_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_TEST_ACE_H_
