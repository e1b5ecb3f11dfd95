// A header that uses base, for the layering test.
//
// Owns: nothing. Called by: nobody. Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_LAYERING_TEST_AT_PLATFORM_PUBLIC_H_
#define HAKMEM_ALLOCATOR_LAYERING_TEST_AT_PLATFORM_PUBLIC_H_

#include "allocator/base/bits.h"

namespace hakmem {
inline constexpr bool kSixteenIsPowerOfTwo = IsPowerOfTwo(16U);
}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LAYERING_TEST_AT_PLATFORM_PUBLIC_H_
