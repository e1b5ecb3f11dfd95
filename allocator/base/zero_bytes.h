// Clearing blocks, and finding out whether they are clear.
//
// Owns: nothing. Called by: core, heap. Thread-safety: as plain memory.
//
// Written out because what a copy of libc's costs to call is more than most
// blocks need, and because hakmem may itself be who exports `memset`.
#ifndef HAKMEM_ALLOCATOR_BASE_ZERO_BYTES_H_
#define HAKMEM_ALLOCATOR_BASE_ZERO_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/base/compiler.h"

namespace hakmem {

// The step of both loops below: two vectors of the smallest machine.
inline constexpr std::size_t kZeroStepBytes = 32;

// For short blocks: `bytes` is at least kZeroStepBytes.
HAK_ALWAYS_INLINE void ZeroShort(void* start, std::size_t bytes) {
  char* at = static_cast<char*>(start);
  // The last step overlaps the one before it.
  char* const last = at + bytes - kZeroStepBytes;
  for (; at < last; at += kZeroStepBytes) {
    __builtin_memset(at, 0, kZeroStepBytes);
    // Or the compiler would make a call of memset of it.
    __asm__("" : "+r"(at));
  }
  __builtin_memset(last, 0, kZeroStepBytes);
}

// Whether all of at least kZeroStepBytes are zero.
HAK_ALWAYS_INLINE bool IsZeroShort(const void* start, std::size_t bytes) {
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  const char* at = static_cast<const char*>(start);
  const char* const last = at + bytes - kZeroStepBytes;
  const auto load = [](const char* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
  };
  Vector found = load(last) | load(last + sizeof(Vector));
  for (; at < last; at += kZeroStepBytes) {
    found |= load(at) | load(at + sizeof(Vector));
  }
  return (found[0] | found[1]) == 0;
}

// For any length: what the processor has for long ones.
void ZeroBytes(void* start, std::size_t bytes);

// The first byte that is not zero; `bytes` if all are.
std::size_t FirstNonZero(const void* start, std::size_t bytes);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_ZERO_BYTES_H_
