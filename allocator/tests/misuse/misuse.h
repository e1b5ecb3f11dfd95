// Shared by the misuse programs. Each commits one misuse, on the route that
// its first argument names, and must not survive it. The comments
// `// expect ROUTE: SENTENCE` in its source are the sentences to be printed,
// with addresses as 0xP, `// expect[hardened debug] ROUTE: SENTENCE` those of
// these variants, and the name of a signal instead of a sentence says that it
// is what ends the program; run_misuse.py checks them.
#ifndef HAKMEM_ALLOCATOR_TESTS_MISUSE_MISUSE_H_
#define HAKMEM_ALLOCATOR_TESTS_MISUSE_MISUSE_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "allocator/tests/opaque.h"

namespace hakmem {

// How much of a route's block a program asks for: classes 64 and 5120, a span
// of 262144 bytes, a huge block of 314572800; each with some bytes behind it.
inline std::size_t SizeOf(const char* route) {
  if (strcmp(route, "tiny") == 0) return 56;
  if (strcmp(route, "pool") == 0) return 5000;
  if (strcmp(route, "span") == 0) return 200000;
  if (strcmp(route, "huge") == 0) return (std::size_t{300} << 20) - 100;
  abort();
}

inline char* Allocate(const char* route) {
  return static_cast<char*>(Opaque(malloc(SizeOf(route))));
}

// Frees without the compiler's advice.
inline void Free(void* pointer) { free(Opaque(pointer)); }

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_TESTS_MISUSE_MISUSE_H_
