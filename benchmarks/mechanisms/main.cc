// Patterns of allocation, one a run, each the same in every run: what the
// allocator's mechanisms bought is counted in them by mechanisms_test.py.
//
// Usage: patterns PATTERN. Prints `figure KEY VALUE`; memory is in KiB.
#include "benchmarks/mechanisms/patterns.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::vector<Pattern> all = kSmallPatterns;
  all.insert(all.end(), kLargePatterns.begin(), kLargePatterns.end());
  all.insert(all.end(), kRunPatterns.begin(), kRunPatterns.end());
  all.insert(all.end(), kThreadPatterns.begin(), kThreadPatterns.end());
  return RunPattern(argc, argv, all);
}
