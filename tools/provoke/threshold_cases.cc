// Requests that nothing could serve.
#include <cstdint>
#include <cstdlib>

#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"

namespace hakmem::provoke {
namespace {

// What a program asks for that computes a length of -2.
constexpr std::size_t kMinusTwo = SIZE_MAX - 1;
// Twice what fits into the part of the address space that hakmem may use.
constexpr std::size_t kTooAligned = std::size_t{1} << 46;

Verdict AllFailed(std::uint64_t calls) {
  return {.provoked = TheLog().failed == calls && TheLog().served == 0};
}

Verdict Size(const Settings&) {
  Try({.call = Call::kMalloc, .size = kMinusTwo});
  return AllFailed(1);
}

Verdict EntryPoints(const Settings&) {
  std::uint64_t calls = 0;
  for (unsigned i = 0; i < kCalls; ++i) {
    const auto call = static_cast<Call>(i);
    if (call == Call::kPvalloc) continue;  // there it is an overflow
    Try({.call = call, .size = kMinusTwo, .alignment = 64});
    ++calls;
  }
  return AllFailed(calls);
}

Verdict Alignment(const Settings&) {
  constexpr Call kAlignedCalls[] = {
      Call::kAlignedAlloc,           Call::kMemalign,
      Call::kPosixMemalign,          Call::kNewAligned,
      Call::kNewArrayAligned,        Call::kNewAlignedNothrow,
      Call::kNewArrayAlignedNothrow,
  };
  std::uint64_t calls = 0;
  for (const Call call : kAlignedCalls) {
    Try({.call = call, .size = 100, .alignment = kTooAligned});
    ++calls;
  }
  return AllFailed(calls);
}

Verdict Overflow(const Settings&) {
  constexpr std::size_t kMany = SIZE_MAX / 2;
  Try({.call = Call::kCalloc, .size = 3, .count = kMany});
  Try({.call = Call::kReallocArray, .size = 3, .count = kMany});
  Try({.call = Call::kPvalloc, .size = kMinusTwo});
  return AllFailed(3);
}

Verdict MaxAlloc(const Settings& settings) {
  const std::size_t size = settings.size == 0 ? 3 << 20 : settings.size;
  void* const block = malloc(1 << 20);
  Try({.call = Call::kMalloc, .size = size});
  Try({.call = Call::kCalloc, .size = size / 4, .count = 4});
  Try({.call = Call::kRealloc, .size = size, .block = block});
  free(block);
  return AllFailed(3);
}

}  // namespace

std::vector<Case> ThresholdCases() {
  return {
      {"size", "Threshold", "size", "malloc of size_t(-2)", nullptr, nullptr,
       Size},
      {"entry_points", "Threshold", "size",
       "size_t(-2) bytes from every entry point", nullptr, nullptr,
       EntryPoints},
      {"alignment", "Threshold", "alignment", "an alignment of 64 TiB", nullptr,
       nullptr, Alignment},
      {"overflow", "Threshold", "overflow",
       "calloc and reallocarray of a product beyond size_t", nullptr, nullptr,
       Overflow},
      {"max_alloc", "Threshold", "max_alloc",
       "3 MiB where HAKMEM_MAX_ALLOC allows 2", "HAKMEM_MAX_ALLOC", "2M",
       MaxAlloc},
  };
}

}  // namespace hakmem::provoke
