#include "allocator/base/zero_bytes.h"

namespace hakmem {

void ZeroBytes(void* start, std::size_t bytes) {
#if defined(__x86_64__)
  __asm__ volatile("rep stosb" : "+D"(start), "+c"(bytes) : "a"(0) : "memory");
#else
  // Not a loop that the compiler would turn into a call of memset.
  volatile char* at = static_cast<volatile char*>(start);
  for (; bytes % sizeof(std::uint64_t) != 0; --bytes) *at++ = 0;
  auto* word = reinterpret_cast<volatile std::uint64_t*>(at);
  for (; bytes != 0; bytes -= sizeof *word) *word++ = 0;
#endif
}

std::size_t FirstNonZero(const void* start, std::size_t bytes) {
  const char* const from = static_cast<const char*>(start);
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, from + at, sizeof word);
    if (word != 0) break;
  }
  while (at < bytes && from[at] == 0) ++at;
  return at;
}

}  // namespace hakmem
