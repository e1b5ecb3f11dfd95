// Checks of hakmem's own invariants (never of the user's pointers).
//
// Owns: the words of a failed check. Called by: every layer.
// Thread-safety: any thread, signal handlers included; never allocates.
#ifndef HAKMEM_ALLOCATOR_BASE_CHECK_H_
#define HAKMEM_ALLOCATOR_BASE_CHECK_H_

#include <cstdint>

#include "allocator/base/compiler.h"

namespace hakmem {

// Prints "hakmem: fatal: internal check failed: EXPR (LEFT vs RIGHT) at
// FILE:LINE" on stderr and aborts.
[[noreturn]] HAK_COLD void CheckFailed(const char* expression,
                                       std::uint64_t left, std::uint64_t right,
                                       const char* file, int line);

namespace internal {
template <typename T>
std::uint64_t CheckOperand(T value) {
  if constexpr (requires { static_cast<std::uint64_t>(value); }) {
    return static_cast<std::uint64_t>(value);
  } else {
    return reinterpret_cast<std::uintptr_t>(value);
  }
}
}  // namespace internal

}  // namespace hakmem

#define HAK_CHECK_OP_(op, left, right)                                    \
  do {                                                                    \
    const auto hak_left_ = (left);                                        \
    const auto hak_right_ = (right);                                      \
    if (!(hak_left_ op hak_right_)) [[unlikely]] {                        \
      ::hakmem::CheckFailed(#left " " #op " " #right,                     \
                            ::hakmem::internal::CheckOperand(hak_left_),  \
                            ::hakmem::internal::CheckOperand(hak_right_), \
                            __FILE__, __LINE__);                          \
    }                                                                     \
  } while (false)

// On in every variant.
#define HAK_CHECK_EQ(left, right) HAK_CHECK_OP_(==, left, right)
#define HAK_CHECK_NE(left, right) HAK_CHECK_OP_(!=, left, right)
#define HAK_CHECK_LE(left, right) HAK_CHECK_OP_(<=, left, right)
#define HAK_CHECK_LT(left, right) HAK_CHECK_OP_(<, left, right)
#define HAK_CHECK_GE(left, right) HAK_CHECK_OP_(>=, left, right)
#define HAK_CHECK_GT(left, right) HAK_CHECK_OP_(>, left, right)
#define HAK_CHECK(condition)                                              \
  do {                                                                    \
    if (!(condition)) [[unlikely]] {                                      \
      ::hakmem::CheckFailed(#condition, false, true, __FILE__, __LINE__); \
    }                                                                     \
  } while (false)

#endif  // HAKMEM_ALLOCATOR_BASE_CHECK_H_
