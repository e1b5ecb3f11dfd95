#include "allocator/platform/raw_copy.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "allocator/base/standard_error.h"
#include "allocator/platform/linux_virtual_memory.h"

extern "C" {

// The targets of the other layers' calls of memcpy and so on.
void* hakmem_raw_memcpy(void* target, const void* source, std::size_t bytes);
void* hakmem_raw_memmove(void* target, const void* source, std::size_t bytes);
void* hakmem_raw_memset(void* target, int value, std::size_t bytes);
char* hakmem_raw_strncpy(char* target, const char* source, std::size_t bytes);

void* hakmem_raw_memcpy(void* target, const void* source, std::size_t bytes) {
  return hakmem::RawMove(target, source, bytes);
}

void* hakmem_raw_memmove(void* target, const void* source, std::size_t bytes) {
  return hakmem::RawMove(target, source, bytes);
}

void* hakmem_raw_memset(void* target, int value, std::size_t bytes) {
  return hakmem::RawFill(target, value, bytes);
}

char* hakmem_raw_strncpy(char* target, const char* source, std::size_t bytes) {
  const std::size_t length = strnlen(source, bytes);
  hakmem::RawMove(target, source, length);
  hakmem::RawFill(target + length, 0, bytes - length);
  return target;
}

#if defined(__GLIBC__)
// libc's, declared for compilers alone.
[[noreturn]] void __chk_fail();
#endif

}  // extern "C"

namespace hakmem {
namespace {

using Move = void* (*)(void*, const void*, std::size_t);
using Fill = void* (*)(void*, int, std::size_t);

// libc's, in a page of their own, which is sealed. Written once, at the start;
// null before, also when this library is not relocated yet.
struct alignas(kSealedBytes) LongCopies {
  std::atomic<Move> move{nullptr};
  std::atomic<Fill> fill{nullptr};
};
constinit LongCopies g_long;

void MoveByProcessor(void* to, const void* from, std::size_t bytes) {
  const bool backwards = reinterpret_cast<std::uintptr_t>(to) -
                             reinterpret_cast<std::uintptr_t>(from) <
                         bytes;
#if defined(__x86_64__)
  if (backwards) {
    to = static_cast<char*>(to) + bytes - 1;
    from = static_cast<const char*>(from) + bytes - 1;
    __asm__ volatile("std; rep movsb; cld"
                     : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
  } else {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
  }
#else
  // Not loops that the compiler would turn into calls of memmove.
  volatile char* const target = static_cast<volatile char*>(to);
  const char* const source = static_cast<const char*>(from);
  if (backwards) {
    while (bytes-- != 0) target[bytes] = source[bytes];
  } else {
    for (std::size_t i = 0; i < bytes; ++i) target[i] = source[i];
  }
#endif
}

void FillByProcessor(void* to, int value, std::size_t bytes) {
#if defined(__x86_64__)
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
#else
  volatile char* const target = static_cast<volatile char*>(to);
  for (std::size_t i = 0; i < bytes; ++i) target[i] = static_cast<char>(value);
#endif
}

}  // namespace

void EndForTooLongCopy() {
#if defined(__GLIBC__)
  __chk_fail();
#else
  constexpr char kWords[] = "*** buffer overflow detected ***: terminated\n";
  [[maybe_unused]] const ssize_t written =
      write(StandardError(), kWords, sizeof(kWords) - 1);
  abort();
#endif
}

void UseLibcsCopies() {
  g_long.move.store(reinterpret_cast<Move>(dlsym(RTLD_NEXT, "memmove")),
                    std::memory_order_relaxed);
  g_long.fill.store(reinterpret_cast<Fill>(dlsym(RTLD_NEXT, "memset")),
                    std::memory_order_relaxed);
  SealObject(&g_long, sizeof g_long);
}

void* MoveLong(void* to, const void* from, std::size_t bytes) {
  const Move move = g_long.move.load(std::memory_order_relaxed);
  if (move != nullptr) [[likely]]
    return move(to, from, bytes);
  MoveByProcessor(to, from, bytes);
  return to;
}

void* FillLong(void* to, int value, std::size_t bytes) {
  const Fill fill = g_long.fill.load(std::memory_order_relaxed);
  if (fill != nullptr) [[likely]]
    return fill(to, value, bytes);
  FillByProcessor(to, value, bytes);
  return to;
}

}  // namespace hakmem
