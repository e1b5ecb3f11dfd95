// The result of a slow path, and the request that it answers.
//
// Owns: nothing. Called by: Allocator, Recovery, frontend. Thread-safety:
// values.
//
// A result goes back to the entry point in two registers. The second is zero
// for a served block with nothing to tell. So one test tells the entry point
// that its work is done. All else goes to its cold end.
//
// Invariants:
//   CR1: a result is plain exactly when its outcome is kServed.
//   CR2: it has a block when the outcome is kServed, kSampled or kDetoured, and
//       none when it is kRefused or kMisuse.
//   CR3: it tells of a refusal when the outcome is kRefused or kDetoured.
#ifndef HAKMEM_ALLOCATOR_CORE_CALL_RESULT_H_
#define HAKMEM_ALLOCATOR_CORE_CALL_RESULT_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/config/config.h"
#include "allocator/failures/failure_event.h"

namespace hakmem {

// The outcome of a call and the refusal that it met, in one register.
class Outcome {
 public:
  enum class Kind : std::uint8_t {
    kServed,
    kSampled,   // by a guarded block, whose stack the entry point has to tell
    kDetoured,  // in spite of a refusal, which is to be told
    kRefused,   // no block; to be tried again, or given up
    kMisuse,    // no block: the pointer is no live block, which was reported
  };

  constexpr Outcome() = default;
  constexpr explicit Outcome(Kind kind, const Refusal& refusal = {})
      : bits_(static_cast<std::uint64_t>(kind) |
              static_cast<std::uint64_t>(refusal.reason) << kReasonShift |
              static_cast<std::uint64_t>(refusal.detail) << kDetailShift |
              static_cast<std::uint64_t>(refusal.call) << kCallShift |
              static_cast<std::uint64_t>(refusal.error_number) << kErrorShift |
              DivideRoundUp(refusal.bytes, kPageBytes) << kPagesShift) {}

  bool plain() const { return bits_ == 0; }
  Kind kind() const {
    return static_cast<Kind>(Field(/*shift=*/0, kReasonShift));
  }
  // Its bytes are rounded up to pages of 4 KiB, which is what ACE asks for. Of
  // a threshold, which is compared with the size asked for, they are unknown.
  Refusal refusal() const {
    return {
        .reason = static_cast<FailureReason>(Field(kReasonShift, kDetailShift)),
        .detail = static_cast<FailureDetail>(Field(kDetailShift, kCallShift)),
        .call = static_cast<VmCall>(Field(kCallShift, kErrorShift)),
        .error_number = static_cast<int>(Field(kErrorShift, kPagesShift)),
        .bytes = (bits_ >> kPagesShift) * kPageBytes};
  }

 private:
  static constexpr std::size_t kPageBytes = 4 * kKiB;
  // The kind comes first, and pages take what is left.
  static constexpr unsigned kReasonShift = 3;
  static constexpr unsigned kDetailShift = 5;
  static constexpr unsigned kCallShift = 10;
  static constexpr unsigned kErrorShift = 14;
  static constexpr unsigned kPagesShift = 23;

  std::uint64_t Field(unsigned shift, unsigned end) const {
    return bits_ >> shift & ((std::uint64_t{1} << (end - shift)) - 1);
  }

  std::uint64_t bits_ = 0;
};
static_assert(sizeof(Outcome) == sizeof(std::uint64_t));

struct [[nodiscard]] CallResult {
  void* block = nullptr;
  Outcome outcome;
};

constexpr CallResult Served(void* block) {
  return {.block = block, .outcome = Outcome()};
}
constexpr CallResult Sampled(void* block) {
  return {.block = block, .outcome = Outcome(Outcome::Kind::kSampled)};
}
// A block that was got, by a detour if there was a refusal.
template <const Config& kConfig>
constexpr CallResult ServedOrDetoured(void* block, const Refusal& refusal) {
  if constexpr (kConfig.report_detours) {
    if (refusal.reason != FailureReason::kNone) {
      return {.block = block,
              .outcome = Outcome(Outcome::Kind::kDetoured, refusal)};
    }
  }
  return Served(block);
}
constexpr CallResult Refused(const Refusal& refusal) {
  return {.block = nullptr,
          .outcome = Outcome(Outcome::Kind::kRefused, refusal)};
}
constexpr CallResult Misused() {
  return {.block = nullptr, .outcome = Outcome(Outcome::Kind::kMisuse)};
}
// For a product of count and size that exceeds the address space.
constexpr CallResult RefusedOverflow() {
  return Refused({.reason = FailureReason::kThreshold,
                  .detail = FailureDetail::kOverflow});
}
// For an alignment that is no power of two.
constexpr CallResult RefusedAlignment() {
  return Refused({.reason = FailureReason::kThreshold,
                  .detail = FailureDetail::kAlignment});
}

// The request of a call: enough to ask again, and to tell of it.
struct Request {
  // kCleared: zero up to its usable size.
  enum class Kind : std::uint8_t { kAllocate, kZeroed, kCleared, kReallocate };

  Call call = Call::kUnknown;
  Kind kind = Kind::kAllocate;
  std::size_t size_bytes = 0;  // with a count: of one element
  std::size_t alignment_bytes = 0;
  std::size_t count = 0;    // elements, if they were counted
  void* pointer = nullptr;  // kReallocate: the block

  // All that was asked for; the largest number if that overflows.
  std::size_t TotalBytes() const {
    std::size_t bytes = size_bytes;
    if (count != 0 && __builtin_mul_overflow(count, size_bytes, &bytes)) {
      bytes = SIZE_MAX;
    }
    return bytes;
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_CALL_RESULT_H_
