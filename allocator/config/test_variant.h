// A variant as a type, for typed tests that run for several.
//
// Owns: nothing. Called by: tests of heap and core. Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_CONFIG_TEST_VARIANT_H_
#define HAKMEM_ALLOCATOR_CONFIG_TEST_VARIANT_H_

#include "allocator/config/config.h"

namespace hakmem {

template <const Config& kConfigOf>
struct Variant {
  static constexpr const Config& kConfig = kConfigOf;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_TEST_VARIANT_H_
