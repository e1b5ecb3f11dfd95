// The calls that clang makes of others where a program is compiled to pass
// allocation tokens (-fsanitize=alloc-token), for programs of other compilers.
#ifndef HAKMEM_ALLOCATOR_TESTS_TOKENS_TOKEN_CALLS_H_
#define HAKMEM_ALLOCATOR_TESTS_TOKENS_TOKEN_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <new>

// HAK_TOKEN_CALL: how a program refers to them. Programs that get them of a
// preloaded library do so weakly.
#define HAK_TOKEN_CALL(HAK_RESULT, HAK_NAME, ...)                     \
  extern "C" HAK_TOKEN_REFERENCE HAK_RESULT __alloc_token_##HAK_NAME( \
      __VA_ARGS__)

#define HAK_TOKEN_CALLS(HAK_PREFIX, ...)                                      \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##malloc, std::size_t __VA_ARGS__);         \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##calloc, std::size_t,                      \
                 std::size_t __VA_ARGS__);                                    \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##realloc, void*, std::size_t __VA_ARGS__); \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##reallocarray, void*, std::size_t,         \
                 std::size_t __VA_ARGS__);                                    \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##aligned_alloc, std::size_t,               \
                 std::size_t __VA_ARGS__);                                    \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##memalign, std::size_t,                    \
                 std::size_t __VA_ARGS__);                                    \
  HAK_TOKEN_CALL(int, HAK_PREFIX##posix_memalign, void**, std::size_t,        \
                 std::size_t __VA_ARGS__);                                    \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##valloc, std::size_t __VA_ARGS__);         \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##pvalloc, std::size_t __VA_ARGS__);        \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_Znwm, std::size_t __VA_ARGS__);          \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_Znam, std::size_t __VA_ARGS__);          \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_ZnwmRKSt9nothrow_t, std::size_t,         \
                 const std::nothrow_t& __VA_ARGS__);                          \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_ZnamRKSt9nothrow_t, std::size_t,         \
                 const std::nothrow_t& __VA_ARGS__);                          \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_ZnwmSt11align_val_t, std::size_t,        \
                 std::align_val_t __VA_ARGS__);                               \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_ZnamSt11align_val_t, std::size_t,        \
                 std::align_val_t __VA_ARGS__);                               \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_ZnwmSt11align_val_tRKSt9nothrow_t,       \
                 std::size_t, std::align_val_t,                               \
                 const std::nothrow_t& __VA_ARGS__);                          \
  HAK_TOKEN_CALL(void*, HAK_PREFIX##_ZnamSt11align_val_tRKSt9nothrow_t,       \
                 std::size_t, std::align_val_t,                               \
                 const std::nothrow_t& __VA_ARGS__)

HAK_TOKEN_CALLS(, , std::size_t);
HAK_TOKEN_CALLS(0_);
HAK_TOKEN_CALLS(1_);
HAK_TOKEN_CALLS(7_);

namespace hakmem {

// Of the default's 64 bits: the upper half holds pointers.
inline constexpr std::uint64_t kDataToken = 0x1234567890abcdef;
inline constexpr std::uint64_t kPointerToken = 0xfedcba9876543210;

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_TESTS_TOKENS_TOKEN_CALLS_H_
