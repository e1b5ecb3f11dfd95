// Copying and filling memory without being checked: what hakmem itself does,
// and what its checked functions do once they have checked.
//
// Owns: which functions of libc do the long ones. Called by: frontend; in a
// product that exports memcpy, memmove and memset of its own, every call of
// these by hakmem's other layers (tools/build/renamed.bzl).
// Thread-safety: as plain memory.
//
// Short ones are done here, which costs less than to call (measured:
// docs/decisions/0020). Before UseLibcsCopies, for instance when libraries are
// still being relocated, long ones are done by what the processor has.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_RAW_COPY_H_
#define HAKMEM_ALLOCATOR_PLATFORM_RAW_COPY_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"

namespace hakmem {

// Once, when the process's libraries are there; before, or where libc cannot be
// found, all else works as well.
void UseLibcsCopies();

inline constexpr std::size_t kMaxShortCopyBytes = 64;

HAK_NOINLINE void* MoveLong(void* to, const void* from, std::size_t bytes);
HAK_NOINLINE void* FillLong(void* to, int value, std::size_t bytes);

namespace internal {

using CopyVector = std::uint64_t __attribute__((vector_size(16)));

// At any address. Not by __builtin_memcpy: a compiler that does not optimise
// makes a call of it, which would lead back here.
template <typename T>
struct __attribute__((packed, may_alias)) Unaligned {
  T value;
};

template <typename T>
HAK_ALWAYS_INLINE T Load(const char* from) {
  return reinterpret_cast<const Unaligned<T>*>(from)->value;
}

template <typename T>
HAK_ALWAYS_INLINE void Store(void* to, T value) {
  static_cast<Unaligned<T>*>(to)->value = value;
}

// From one T to two of them: both ends, all loaded before anything is stored.
template <typename T>
HAK_ALWAYS_INLINE void MoveEnds(char* to, const char* from, std::size_t bytes) {
  const T first = Load<T>(from);
  const T last = Load<T>(from + bytes - sizeof(T));
  Store(to, first);
  Store(to + bytes - sizeof(T), last);
}

template <typename T>
HAK_ALWAYS_INLINE void FillEnds(char* to, T value, std::size_t bytes) {
  Store(to, value);
  Store(to + bytes - sizeof(T), value);
}

}  // namespace internal

// As glibc's checked copies end the process when what is copied does not fit.
[[noreturn]] void EndForTooLongCopy();

// memmove; the two may overlap.
HAK_ALWAYS_INLINE void* RawMove(void* target, const void* source,
                                std::size_t bytes) {
  using Vector = internal::CopyVector;
  char* const to = static_cast<char*>(target);
  const char* const from = static_cast<const char*>(source);
  if (bytes > kMaxShortCopyBytes) return MoveLong(target, source, bytes);
  if (bytes > 2 * sizeof(Vector)) {
    const Vector first = internal::Load<Vector>(from);
    const Vector second = internal::Load<Vector>(from + 16);
    const Vector third = internal::Load<Vector>(from + bytes - 32);
    const Vector last = internal::Load<Vector>(from + bytes - 16);
    internal::Store(to, first);
    internal::Store(to + 16, second);
    internal::Store(to + bytes - 32, third);
    internal::Store(to + bytes - 16, last);
  } else if (bytes >= sizeof(Vector)) {
    internal::MoveEnds<Vector>(to, from, bytes);
  } else if (bytes >= sizeof(std::uint64_t)) {
    internal::MoveEnds<std::uint64_t>(to, from, bytes);
  } else if (bytes >= sizeof(std::uint32_t)) {
    internal::MoveEnds<std::uint32_t>(to, from, bytes);
  } else if (bytes >= sizeof(std::uint16_t)) {
    internal::MoveEnds<std::uint16_t>(to, from, bytes);
  } else if (bytes != 0) {
    *to = *from;
  }
  return target;
}

// memset.
HAK_ALWAYS_INLINE void* RawFill(void* target, int value, std::size_t bytes) {
  using Vector = internal::CopyVector;
  char* const to = static_cast<char*>(target);
  if (bytes > kMaxShortCopyBytes) return FillLong(target, value, bytes);
  const std::uint64_t word =
      std::uint64_t{static_cast<unsigned char>(value)} * 0x0101010101010101;
  const Vector vector = {word, word};
  if (bytes > 2 * sizeof(Vector)) {
    internal::FillEnds(to, vector, bytes);
    internal::FillEnds(to + 16, vector, bytes - 32);
  } else if (bytes >= sizeof(Vector)) {
    internal::FillEnds(to, vector, bytes);
  } else if (bytes >= sizeof(std::uint64_t)) {
    internal::FillEnds(to, word, bytes);
  } else if (bytes >= sizeof(std::uint32_t)) {
    internal::FillEnds(to, static_cast<std::uint32_t>(word), bytes);
  } else if (bytes >= sizeof(std::uint16_t)) {
    internal::FillEnds(to, static_cast<std::uint16_t>(word), bytes);
  } else if (bytes != 0) {
    *to = static_cast<char>(value);
  }
  return target;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_RAW_COPY_H_
