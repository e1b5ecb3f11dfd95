// glibc's <malloc.h>, also where another libc has one of its own.
//
// Owns: nothing. Called by: frontend, which exports glibc's functions
// everywhere: a program that finds them while it runs gets answers.
// Thread-safety: not applicable.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_GLIBC_MALLOC_H_
#define HAKMEM_ALLOCATOR_PLATFORM_GLIBC_MALLOC_H_

#include <malloc.h>

#include <cstddef>

namespace hakmem {
// Whether libc's headers tell C++ that its functions throw nothing; what
// defines them must agree.
#if defined(__GLIBC__)
inline constexpr bool kNoThrow = true;
#else
inline constexpr bool kNoThrow = false;
#endif
}  // namespace hakmem

#if !defined(__GLIBC__)

// Layouts and values are glibc's.
struct mallinfo {
  int arena, ordblks, smblks, hblks, hblkhd;
  int usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
  std::size_t arena, ordblks, smblks, hblks, hblkhd;
  std::size_t usmblks, fsmblks, uordblks, fordblks, keepcost;
};

inline constexpr int M_MXFAST = 1;
inline constexpr int M_NLBLKS = 2;
inline constexpr int M_GRAIN = 3;
inline constexpr int M_KEEP = 4;
inline constexpr int M_TRIM_THRESHOLD = -1;
inline constexpr int M_TOP_PAD = -2;
inline constexpr int M_MMAP_THRESHOLD = -3;
inline constexpr int M_MMAP_MAX = -4;
inline constexpr int M_CHECK_ACTION = -5;
inline constexpr int M_PERTURB = -6;
inline constexpr int M_ARENA_TEST = -7;
inline constexpr int M_ARENA_MAX = -8;

#endif

#endif  // HAKMEM_ALLOCATOR_PLATFORM_GLIBC_MALLOC_H_
