// The private header of a library, for the layering test.
//
// Owns: nothing. Called by: nobody. Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_LAYERING_TEST_AT_REPORTS_PRIVATE_H_
#define HAKMEM_ALLOCATOR_LAYERING_TEST_AT_REPORTS_PRIVATE_H_

namespace hakmem {
inline constexpr int kPrivateConstant = 1;
}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LAYERING_TEST_AT_REPORTS_PRIVATE_H_
