// The functions that code calls which clang has given allocation tokens
// (-fsanitize=alloc-token): a table, from which each variant's are made.
//
// Owns: nothing. Called by: frontend. Thread-safety: constants.
//
// A call of NAME(arguments) has become __alloc_token_NAME(arguments, token),
// or, with the fast ABI, __alloc_token_TOKEN_NAME(arguments).
#ifndef HAKMEM_ALLOCATOR_FRONTEND_TOKEN_FAMILY_H_
#define HAKMEM_ALLOCATOR_FRONTEND_TOKEN_FAMILY_H_

// HAK_ROW(result, NAME, (parameters), (arguments), call, typed). `call`: what
// the program would call without tokens. `typed`: what a variant gives that
// keeps types apart (typed_symbols.inc); 0 or null: it makes that call, too.
// clang finds no type for some of them.
#define HAK_TOKEN_FAMILY(HAK_ROW)                                              \
  HAK_ROW(void*, malloc, (std::size_t size), (size), ::malloc(size),           \
          Typed<Call::kMalloc>(kMinAlignmentBytes, size, token))               \
  HAK_ROW(void*, calloc, (std::size_t count, std::size_t size), (count, size), \
          ::calloc(count, size), TypedZeroed(count, size, token))              \
  HAK_ROW(void*, realloc, (void* pointer, std::size_t size), (pointer, size),  \
          ::realloc(pointer, size),                                            \
          pointer != nullptr                                                   \
              ? nullptr                                                        \
              : Typed<Call::kRealloc>(kMinAlignmentBytes, size, token))        \
  HAK_ROW(void*, reallocarray,                                                 \
          (void* pointer, std::size_t count, std::size_t size),                \
          (pointer, count, size), ::reallocarray(pointer, count, size),        \
          nullptr)                                                             \
  HAK_ROW(void*, aligned_alloc, (std::size_t alignment, std::size_t size),     \
          (alignment, size), ::aligned_alloc(alignment, size),                 \
          Typed<Call::kAlignedAlloc>(alignment, size, token))                  \
  HAK_ROW(void*, memalign, (std::size_t alignment, std::size_t size),          \
          (alignment, size), ::memalign(alignment, size),                      \
          Typed<Call::kMemalign>(alignment, size, token))                      \
  HAK_ROW(int, posix_memalign,                                                 \
          (void** result, std::size_t alignment, std::size_t size),            \
          (result, alignment, size),                                           \
          ::posix_memalign(result, alignment, size), 0)                        \
  HAK_ROW(void*, valloc, (std::size_t size), (size), ::valloc(size),           \
          Typed<Call::kValloc>(TheProduct::PageBytes(), size, token))          \
  HAK_ROW(void*, pvalloc, (std::size_t size), (size), ::pvalloc(size),         \
          nullptr)                                                             \
  HAK_ROW(void*, _Znwm, (std::size_t size), (size), ::operator new(size),      \
          TypedNew<Call::kNew>(size, token))                                   \
  HAK_ROW(void*, _Znam, (std::size_t size), (size), ::operator new[](size),    \
          TypedNew<Call::kNewArray>(size, token))                              \
  HAK_ROW(void*, _ZnwmRKSt9nothrow_t,                                          \
          (std::size_t size, const std::nothrow_t& nothrow), (size, nothrow),  \
          ::operator new(size, nothrow),                                       \
          TypedNew<Call::kNewNothrow>(size, token))                            \
  HAK_ROW(void*, _ZnamRKSt9nothrow_t,                                          \
          (std::size_t size, const std::nothrow_t& nothrow), (size, nothrow),  \
          ::operator new[](size, nothrow),                                     \
          TypedNew<Call::kNewArrayNothrow>(size, token))                       \
  HAK_ROW(void*, _ZnwmSt11align_val_t,                                         \
          (std::size_t size, std::align_val_t alignment), (size, alignment),   \
          ::operator new(size, alignment),                                     \
          TypedNew<Call::kNew>(size, alignment, token))                        \
  HAK_ROW(void*, _ZnamSt11align_val_t,                                         \
          (std::size_t size, std::align_val_t alignment), (size, alignment),   \
          ::operator new[](size, alignment),                                   \
          TypedNew<Call::kNewArray>(size, alignment, token))                   \
  HAK_ROW(void*, _ZnwmSt11align_val_tRKSt9nothrow_t,                           \
          (std::size_t size, std::align_val_t alignment,                       \
           const std::nothrow_t& nothrow),                                     \
          (size, alignment, nothrow),                                          \
          ::operator new(size, alignment, nothrow),                            \
          TypedNew<Call::kNewNothrow>(size, alignment, token))                 \
  HAK_ROW(void*, _ZnamSt11align_val_tRKSt9nothrow_t,                           \
          (std::size_t size, std::align_val_t alignment,                       \
           const std::nothrow_t& nothrow),                                     \
          (size, alignment, nothrow),                                          \
          ::operator new[](size, alignment, nothrow),                          \
          TypedNew<Call::kNewArrayNothrow>(size, alignment, token))

// HAK_ROW(TOKEN, ...) for each token that the fast ABI's names have here.
#define HAK_FOR_EACH_FAST_TOKEN(HAK_ROW, ...) \
  HAK_ROW(0, __VA_ARGS__)                     \
  HAK_ROW(1, __VA_ARGS__)                     \
  HAK_ROW(2, __VA_ARGS__)                     \
  HAK_ROW(3, __VA_ARGS__)                     \
  HAK_ROW(4, __VA_ARGS__)                     \
  HAK_ROW(5, __VA_ARGS__)                     \
  HAK_ROW(6, __VA_ARGS__)                     \
  HAK_ROW(7, __VA_ARGS__)

// A list without its parentheses.
#define HAK_LISTED(...) __VA_ARGS__

#endif  // HAKMEM_ALLOCATOR_FRONTEND_TOKEN_FAMILY_H_
