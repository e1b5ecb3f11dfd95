// What ACE answers: a block, or why there is none.
//
// Owns: nothing. Called by: who grants, and who tells the program.
// Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_ACE_REFUSAL_H_
#define HAKMEM_ALLOCATOR_ACE_REFUSAL_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Why a grant failed; kNone: it did not. With a grant that was made: why it was
// not made by the shortest way.
struct Refusal {
  FailureReason reason = FailureReason::kNone;
  FailureDetail detail = FailureDetail::kNone;
  VmCall call = VmCall::kNone;  // MapFail: what the kernel refused
  int error_number = 0;
  std::uint64_t bytes = 0;  // what was asked for
};

// The kernel's refusal. Which limit made it refuse is found out later.
constexpr Refusal RefusedByKernel(const VmStatus& status) {
  return {FailureReason::kMapFail,
          status.injected                 ? FailureDetail::kInjected
          : status.error_number == EEXIST ? FailureDetail::kAddressInUse
                                          : FailureDetail::kUnknown,
          status.call, status.error_number, status.bytes};
}

constexpr Refusal OverHeapLimit(std::size_t bytes) {
  return {.reason = FailureReason::kExhaustion,
          .detail = FailureDetail::kHeapLimit,
          .bytes = bytes};
}

// Addresses are used up, or the room for tables.
constexpr Refusal UsedUp(bool tables, std::size_t bytes) {
  return {.reason = FailureReason::kExhaustion,
          .detail = tables ? FailureDetail::kMetadata : FailureDetail::kRegion,
          .bytes = bytes};
}

// What a table answers that could not grow.
constexpr Refusal RefusedTable(const VmStatus& status, std::size_t bytes) {
  return status.error_number == ENOSPC ? UsedUp(/*tables=*/true, bytes)
                                       : RefusedByKernel(status);
}

// Whether another zone may serve the request: addresses are the reason.
constexpr bool AreAddressesUsedUp(const Refusal& refusal) {
  return refusal.detail == FailureDetail::kRegion ||
         refusal.detail == FailureDetail::kMetadata ||
         refusal.detail == FailureDetail::kAddressInUse;
}

struct BlockGrant {
  Address address = 0;  // 0: refused
  Refusal refusal = {};
};

// A run of units; first == kNoUnit: refused.
struct RunGrant {
  UnitIndex first = kNoUnit;
  std::uint32_t units = 0;  // a long span's may be more than it asked for
  bool known_zero = false;
  std::uint32_t guard_bytes = 0;  // at the run's end: inaccessible
  Refusal refusal;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_REFUSAL_H_
