// Calls each function of the family that clang calls where a program is
// compiled to pass allocation tokens, in both its forms.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#include "allocator/tests/opaque.h"
#include "allocator/tests/tokens/token_calls.h"

namespace {

using hakmem::Opaque;

int g_failures = 0;

void Expect(bool is_true, const char* what, int line) {
  if (is_true) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  ++g_failures;
}
#define HAK_EXPECT(what) Expect(what, #what, __LINE__)

constexpr std::size_t kPageBytes = 4096;

// A block of so many bytes, at such an address, which can be written.
void* Checked(void* pointer, std::size_t size, std::size_t alignment = 16) {
  HAK_EXPECT(pointer != nullptr);
  HAK_EXPECT(reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0);
  HAK_EXPECT(malloc_usable_size(pointer) >= size);
  memset(Opaque(pointer), 0x5a, size);
  return pointer;
}

constexpr std::align_val_t kAligned{128};

// TOKEN_...: a prefix, and the argument or nothing.
#define HAK_CALL_ALL(HAK_PREFIX, ...)                                          \
  for (const std::size_t size : {24UL, 900UL, 5000UL, 100000UL}) {             \
    free(Checked(HAK_PREFIX##malloc(size __VA_ARGS__), size));                 \
    char* zero = static_cast<char*>(HAK_PREFIX##calloc(size, 3 __VA_ARGS__));  \
    for (std::size_t i = 0; i < 3 * size; ++i) HAK_EXPECT(zero[i] == 0);       \
    free(Checked(zero, 3 * size));                                             \
    void* moved = HAK_PREFIX##realloc(nullptr, size __VA_ARGS__);              \
    memset(Checked(moved, size), 7, size);                                     \
    moved = HAK_PREFIX##realloc(moved, 3 * size __VA_ARGS__);                  \
    HAK_EXPECT(static_cast<char*>(moved)[size - 1] == 7);                      \
    moved = HAK_PREFIX##reallocarray(moved, size, 5 __VA_ARGS__);              \
    HAK_EXPECT(static_cast<char*>(moved)[size - 1] == 7);                      \
    free(Checked(moved, 5 * size));                                            \
    free(                                                                      \
        Checked(HAK_PREFIX##aligned_alloc(256, size __VA_ARGS__), size, 256)); \
    free(Checked(HAK_PREFIX##memalign(256, size __VA_ARGS__), size, 256));     \
    void* placed = nullptr;                                                    \
    HAK_EXPECT(HAK_PREFIX##posix_memalign(&placed, 64, size __VA_ARGS__) ==    \
               0);                                                             \
    free(Checked(placed, size, 64));                                           \
    free(Checked(HAK_PREFIX##valloc(size __VA_ARGS__), size, kPageBytes));     \
    free(Checked(HAK_PREFIX##pvalloc(size __VA_ARGS__), size, kPageBytes));    \
    ::operator delete(Checked(HAK_PREFIX##_Znwm(size __VA_ARGS__), size));     \
    ::operator delete(Checked(HAK_PREFIX##_Znwm(size __VA_ARGS__), size),      \
                      size);                                                   \
    ::operator delete[](Checked(HAK_PREFIX##_Znam(size __VA_ARGS__), size));   \
    ::operator delete(Checked(                                                 \
        HAK_PREFIX##_ZnwmRKSt9nothrow_t(size, std::nothrow __VA_ARGS__),       \
        size));                                                                \
    ::operator delete[](Checked(                                               \
        HAK_PREFIX##_ZnamRKSt9nothrow_t(size, std::nothrow __VA_ARGS__),       \
        size));                                                                \
    ::operator delete(                                                         \
        Checked(HAK_PREFIX##_ZnwmSt11align_val_t(size, kAligned __VA_ARGS__),  \
                size, 128),                                                    \
        kAligned);                                                             \
    ::operator delete[](                                                       \
        Checked(HAK_PREFIX##_ZnamSt11align_val_t(size, kAligned __VA_ARGS__),  \
                size, 128),                                                    \
        kAligned);                                                             \
    ::operator delete(Checked(HAK_PREFIX##_ZnwmSt11align_val_tRKSt9nothrow_t(  \
                                  size, kAligned, std::nothrow __VA_ARGS__),   \
                              size, 128),                                      \
                      kAligned);                                               \
    ::operator delete[](                                                       \
        Checked(HAK_PREFIX##_ZnamSt11align_val_tRKSt9nothrow_t(                \
                    size, kAligned, std::nothrow __VA_ARGS__),                 \
                size, 128),                                                    \
        kAligned);                                                             \
  }

void CallAll() {
  for (const std::uint64_t token :
       {std::uint64_t{0}, std::uint64_t{1}, hakmem::kDataToken,
        hakmem::kPointerToken, ~std::uint64_t{0}}) {
    HAK_CALL_ALL(__alloc_token_, , token)
  }
  HAK_CALL_ALL(__alloc_token_0_)
  HAK_CALL_ALL(__alloc_token_1_)
  HAK_CALL_ALL(__alloc_token_7_)
}

// What cannot be had fails as it does without a token.
void Refused() {
  errno = 0;
  HAK_EXPECT(__alloc_token_malloc(PTRDIFF_MAX, hakmem::kDataToken) == nullptr);
  HAK_EXPECT(errno == ENOMEM);
  HAK_EXPECT(__alloc_token_calloc(SIZE_MAX / 2, 4, hakmem::kDataToken) ==
             nullptr);
  HAK_EXPECT(__alloc_token__ZnwmRKSt9nothrow_t(PTRDIFF_MAX, std::nothrow,
                                               hakmem::kDataToken) == nullptr);
  bool thrown = false;
  try {
    __alloc_token__Znwm(PTRDIFF_MAX, hakmem::kPointerToken);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  HAK_EXPECT(thrown);
  errno = 0;
  HAK_EXPECT(__alloc_token_aligned_alloc(3, 8, hakmem::kDataToken) == nullptr);
  HAK_EXPECT(errno == EINVAL);
  void* empty = __alloc_token_malloc(0, hakmem::kPointerToken);
  HAK_EXPECT(empty != nullptr);
  free(empty);
}

}  // namespace

int main() {
  CallAll();
  Refused();
  return g_failures == 0 ? 0 : 1;
}
