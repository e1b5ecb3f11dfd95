#include "allocator/base/zero_bytes.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hakmem {
namespace {

using WideVector = std::uint64_t __attribute__((vector_size(32)));

// So many vectors are looked at before any of them is written.
constexpr std::size_t kStepVectors = 8;
static_assert(kMinLongBytes == kStepVectors * sizeof(WideVector));

// Clears kStepVectors vectors and more.
template <typename Vector>
HAK_ALWAYS_INLINE void ZeroWhereNot(char* at, std::size_t bytes) {
  constexpr std::size_t kStepBytes = kStepVectors * sizeof(Vector);
  char* const last = at + bytes - kStepBytes;
  for (;;) {
    Vector found{};
    for (std::size_t i = 0; i < kStepBytes; i += sizeof(Vector)) {
      Vector vector;
      __builtin_memcpy(&vector, at + i, sizeof vector);
      found |= vector;
    }
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < sizeof(Vector) / sizeof any; ++i) {
      any |= found[i];
    }
    if (any != 0) {
      for (std::size_t i = 0; i < kStepBytes; i += sizeof(Vector)) {
        const Vector zero{};
        __builtin_memcpy(at + i, &zero, sizeof zero);
      }
    }
    if (at == last) return;
    at += kStepBytes;
    // The last step overlaps the one before.
    if (at > last) at = last;
  }
}

#if defined(__x86_64__)

// Whether the processor has AVX2, and the kernel keeps its registers.
bool FindAvx2() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kOsxsave = 1U << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) {
    return false;
  }
  unsigned kept = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(edx) : "c"(0));
  constexpr unsigned kXmmAndYmm = 6;
  constexpr unsigned kAvx2 = 1U << 5;
  return (kept & kXmmAndYmm) == kXmmAndYmm &&
         __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ebx & kAvx2) != 0;
}

enum class Avx2 : std::uint8_t { kUnknown, kNo, kYes };
// Written by whoever finds it unknown, always with the same value. No pointer
// to a function: that could be made to point elsewhere.
constinit std::atomic<Avx2> avx2{Avx2::kUnknown};

bool HasAvx2() {
  Avx2 known = avx2.load(std::memory_order_relaxed);
  if (known == Avx2::kUnknown) [[unlikely]] {
    known = FindAvx2() ? Avx2::kYes : Avx2::kNo;
    avx2.store(known, std::memory_order_relaxed);
  }
  return known == Avx2::kYes;
}

// Twice as fast as sixteen bytes at a time.
__attribute__((target("avx2"))) void ZeroLongByAvx2(char* start,
                                                    std::size_t bytes) {
  ZeroWhereNot<WideVector>(start, bytes);
}

#endif

}  // namespace

void ZeroLongBytes(void* start, std::size_t bytes) {
  char* const at = static_cast<char*>(start);
#if defined(__x86_64__)
  if (HasAvx2()) {
    ZeroLongByAvx2(at, bytes);
    return;
  }
#endif
  ZeroWhereNot<internal::ZeroVector>(at, bytes);
}

void ZeroBytes(void* start, std::size_t bytes) {
  char* at = static_cast<char*>(start);
  if (bytes >= kMinLongBytes) {
    ZeroLongBytes(at, bytes);
    return;
  }
  // Or the compiler would make calls of memset of these.
  const std::uint64_t zero = 0;
  for (; bytes >= sizeof zero; bytes -= sizeof zero, at += sizeof zero) {
    __builtin_memcpy(at, &zero, sizeof zero);
    __asm__("" : "+r"(at));
  }
  for (; bytes != 0; --bytes, ++at) {
    *at = 0;
    __asm__("" : "+r"(at));
  }
}

std::size_t FirstNonZero(const void* start, std::size_t bytes) {
  const char* const from = static_cast<const char*>(start);
  std::size_t at = 0;
  // One branch for a line of the cache.
  for (std::uint64_t line[8]; at + sizeof line <= bytes; at += sizeof line) {
    __builtin_memcpy(line, from + at, sizeof line);
    std::uint64_t all = 0;
    for (const std::uint64_t word : line) all |= word;
    if (all != 0) break;
  }
  // Blocks are short, and of whole words.
  for (std::uint64_t word = 0; at + sizeof word <= bytes; at += sizeof word) {
    __builtin_memcpy(&word, from + at, sizeof word);
    if (word != 0) break;
  }
  while (at < bytes && from[at] == 0) ++at;
  return at;
}

}  // namespace hakmem
