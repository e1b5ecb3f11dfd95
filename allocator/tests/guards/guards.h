// Shared by the programs about guarded blocks. Each commits one misuse of a
// block of the size that its first argument names, while every allocation is
// guarded. The comments `// expect SIZE SIGNAL: SENTENCE` in its source say how
// it ends, with addresses as 0xP; run_guards.py checks them.
#ifndef HAKMEM_ALLOCATOR_TESTS_GUARDS_GUARDS_H_
#define HAKMEM_ALLOCATOR_TESTS_GUARDS_GUARDS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "allocator/tests/opaque.h"

namespace hakmem {

// "whole" ends where its alignment lets it end at a guard page; "odd" does not;
// "large" has several pages.
inline std::size_t SizeOf(const char* name) {
  if (strcmp(name, "whole") == 0) return 48;
  if (strcmp(name, "odd") == 0) return 100;
  if (strcmp(name, "large") == 0) return 20000;
  abort();
}

enum class Side : std::uint8_t { kBeginsAtGuard, kEndsAtGuard };

// Chance decides on which side of its pages a block lies: tries until it lies
// on this one.
inline char* Allocate(const char* name, Side side) {
  constexpr std::uintptr_t kPageBytes = 4096;
  for (;;) {
    const std::size_t size = SizeOf(name);
    char* const block = static_cast<char*>(Opaque(malloc(size)));
    const auto start = reinterpret_cast<std::uintptr_t>(block);
    const bool begins = start % kPageBytes == 0;
    if (begins == (side == Side::kBeginsAtGuard)) return block;
    free(block);
  }
}

inline void Free(void* pointer) {
  free(Opaque(pointer));
  // Its caller is to be found on the stack.
  __asm__ volatile("");
}

// Another byte than was there, whatever a canary is; in one access, so that a
// fault is a write's.
inline void Write(char* at) { __atomic_fetch_xor(at, 0xff, __ATOMIC_RELAXED); }

inline char Read(const char* at) {
  return *static_cast<const volatile char*>(at);
}

template <typename Body>
void OnAnotherThread(Body body) {
  std::thread(body).join();
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_TESTS_GUARDS_GUARDS_H_
