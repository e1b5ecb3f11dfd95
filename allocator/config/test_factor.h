// How many times the usual work a test does: HAK_TEST_FACTOR, 1 without it.
//
// Owns: nothing. Called by: tests of which more rounds find more.
// Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_CONFIG_TEST_FACTOR_H_
#define HAKMEM_ALLOCATOR_CONFIG_TEST_FACTOR_H_

#include <algorithm>
#include <cstdlib>

namespace hakmem {

inline int TestFactor() {
  const char* const text = std::getenv("HAK_TEST_FACTOR");
  return text == nullptr ? 1 : std::max(std::atoi(text), 1);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_TEST_FACTOR_H_
