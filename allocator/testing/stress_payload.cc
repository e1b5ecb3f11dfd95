#include "allocator/testing/stress_payload.h"

#include <algorithm>
#include <cstring>

#include "allocator/testing/stress_random.h"

namespace hakmem::stress {
namespace {

constexpr std::size_t kWholeUpTo = 64 * 1024;
constexpr std::size_t kDenseUpTo = 4 * 1024 * 1024;
constexpr std::size_t kDenseStride = 1024;
constexpr std::size_t kSparseStride = 1024 * 1024;
constexpr std::size_t kProbe = 64;

// Odd, so that the words of one payload differ from each other.
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;

std::uint64_t PayloadWord(std::uint64_t key, std::size_t index) {
  return key + index / sizeof(std::uint64_t) * kStep;
}

// Calls probe(begin, end) for each written range, in order; begin is a multiple
// of eight. Ends early when a probe returns false.
template <typename Probe>
void ForEachProbe(std::size_t size, Probe probe) {
  if (size <= kWholeUpTo) {
    probe(std::size_t{0}, size);
    return;
  }
  const std::size_t stride = size <= kDenseUpTo ? kDenseStride : kSparseStride;
  for (std::size_t begin = 0; begin + kProbe < size; begin += stride) {
    if (!probe(begin, begin + kProbe)) return;
  }
  probe((size - kProbe) & ~std::size_t{7}, size);
}

// The first index in [begin, end) where `block` differs from the payload of
// `key`, or end.
std::size_t FirstDifference(const unsigned char* block, std::size_t begin,
                            std::size_t end, std::uint64_t key) {
  std::size_t index = begin;
  for (; index + sizeof(std::uint64_t) <= end; index += sizeof(std::uint64_t)) {
    const std::uint64_t word = PayloadWord(key, index);
    if (std::memcmp(block + index, &word, sizeof(word)) != 0) break;
  }
  for (; index < end; ++index) {
    if (block[index] != PayloadByte(key, index)) return index;
  }
  return end;
}

}  // namespace

std::uint64_t PayloadKey(std::uint64_t seed, std::uint64_t id,
                         std::size_t size) {
  return Mix(Mix(Mix(seed) ^ id) ^ size);
}

std::uint8_t PayloadByte(std::uint64_t key, std::size_t index) {
  const std::uint64_t word = PayloadWord(key, index);
  unsigned char bytes[sizeof(word)];
  std::memcpy(bytes, &word, sizeof(word));
  return bytes[index % sizeof(word)];
}

void FillPayload(void* block, std::size_t size, std::uint64_t key) {
  auto* bytes = static_cast<unsigned char*>(block);
  ForEachProbe(size, [&](std::size_t begin, std::size_t end) {
    std::size_t index = begin;
    for (; index + sizeof(std::uint64_t) <= end;
         index += sizeof(std::uint64_t)) {
      const std::uint64_t word = PayloadWord(key, index);
      std::memcpy(bytes + index, &word, sizeof(word));
    }
    for (; index < end; ++index) bytes[index] = PayloadByte(key, index);
    return true;
  });
}

std::optional<std::size_t> FindDamage(const void* block, std::size_t size,
                                      std::size_t valid, std::uint64_t key) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  std::optional<std::size_t> found;
  ForEachProbe(size, [&](std::size_t begin, std::size_t end) {
    end = std::min(end, valid);
    if (begin >= end) return false;
    const std::size_t index = FirstDifference(bytes, begin, end, key);
    if (index != end) found = index;
    return !found.has_value();
  });
  return found;
}

std::optional<std::size_t> FindNonZero(const void* block, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  std::optional<std::size_t> found;
  ForEachProbe(size, [&](std::size_t begin, std::size_t end) {
    const auto* at = std::find_if(bytes + begin, bytes + end,
                                  [](unsigned char byte) { return byte != 0; });
    if (at != bytes + end) found = static_cast<std::size_t>(at - bytes);
    return !found.has_value();
  });
  return found;
}

}  // namespace hakmem::stress
