// One call that memory could not be had for, or not at once: all that is known.
//
// Owns: the words. Called by: ace (reasons), core (events), frontend (entry
// points), the ring and the trace. Thread-safety: plain values.
//
// One call of the program makes at most one event, whatever is tried inside it.
//
// Invariants:
//   E1: fields of FailureEvent keep their places, as debuggers read them
//       (docs/process_tables.md). New ones go to the end.
//   E2: enumerators keep their numbers; new ones go to the end.
#ifndef HAKMEM_ALLOCATOR_FAILURES_FAILURE_EVENT_H_
#define HAKMEM_ALLOCATOR_FAILURES_FAILURE_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "allocator/base/route.h"
#include "allocator/platform/virtual_memory.h"

namespace hakmem {

enum class FailureReason : std::uint8_t {
  kNone,
  kThreshold,   // no such block can exist
  kExhaustion,  // hakmem's own limit, or its addresses, are used up
  kMapFail      // the kernel refused memory
};

// The limit that was hit. The comment names the reason it belongs to.
enum class FailureDetail : std::uint8_t {
  kNone,
  kSize,           // Threshold: no route holds that many bytes
  kAlignment,      // Threshold: no route aligns that strictly
  kOverflow,       // Threshold: count * size exceeds size_t
  kMaxAlloc,       // Threshold: HAKMEM_MAX_ALLOC
  kRegion,         // Exhaustion: the region's addresses are used up
  kHeapLimit,      // Exhaustion: HAKMEM_HEAP_LIMIT
  kRlimitMemlock,  // MapFail: RLIMIT_MEMLOCK, after mlockall(MCL_FUTURE)
  kMetadata,       // Exhaustion: a table of hakmem's is full
  kMaxMapCount,    // MapFail: vm.max_map_count
  kRlimitAs,       // MapFail: RLIMIT_AS
  kRlimitData,     // MapFail: RLIMIT_DATA
  kCgroup,         // MapFail: a control group's memory limit
  kOvercommit,     // MapFail: vm.overcommit_memory
  kAddressInUse,   // MapFail: something else has taken the addresses
  kInjected,       // MapFail: HAKMEM_FAIL_NTH
  kUnknown         // MapFail: none of the limits explains it
};
inline constexpr unsigned kFailureDetailCount = 17;

// The end of the call.
enum class Disposition : std::uint8_t {
  kPending,                // still being tried: a handler runs
  kReturnedNull,           // errno ENOMEM, or posix_memalign's result
  kThrew,                  // std::bad_alloc, or what the new-handler threw
  kServedAfterPurge,       // hakmem gave its caches back and tried again
  kServedAfterHandler,     // the program's failure handler freed memory
  kServedAfterNewHandler,  // the program's new-handler freed memory
  kServedByDetour,         // another way served it at once (tracing variant)
};
inline constexpr unsigned kDispositionCount = 7;

// The function that the program called.
enum class Call : std::uint8_t {
  kUnknown,
  kMalloc,
  kCalloc,
  kRealloc,
  kReallocarray,
  kAlignedAlloc,
  kMemalign,
  kPosixMemalign,
  kValloc,
  kPvalloc,
  kNew,
  kNewArray,
  kNewNothrow,
  kNewArrayNothrow,
  kMallocx,
  kRallocx,
};
inline constexpr unsigned kCallCount = 16;

const char* FailureReasonName(FailureReason reason);   // "Threshold" …
const char* FailureDetailName(FailureDetail detail);   // "max_alloc" …
const char* DispositionName(Disposition disposition);  // "returned_null" …
const char* CallName(Call call);                       // "operator new[]" …
const char* VmCallName(VmCall call);                   // "mmap" …
const char* ErrorName(int error_number);  // "ENOMEM"; "" for a rare one

inline constexpr unsigned kMaxFailureFrames = 32;

// hakmem's memory in bytes. All but `largest_free` are exact.
struct MemoryFigures {
  // In slabs, spans and Huge blocks that are in use; more than the program
  // holds, because it counts the free blocks of slabs, and spans that threads
  // keep.
  std::uint64_t granted = 0;
  std::uint64_t cached = 0;  // free, kept for reuse, not yet given back
  std::uint64_t mapped = 0;  // for blocks
  std::uint64_t peak_mapped = 0;
  std::uint64_t metadata = 0;  // mapped for tables and heaps
  // The longest run of mapped free memory; a lower bound from 64 MiB on.
  std::uint64_t largest_free = 0;
};

// FailureEvent::live_bytes of an event for which nothing was counted.
inline constexpr std::uint64_t kLiveNotCounted = ~std::uint64_t{0};

struct FailureEvent {
  // --- What the call asked for ---
  std::uint64_t sequence = 0;  // of this process, from 1
  std::uint64_t time_ns = 0;   // since 1970-01-01 00:00 UTC
  std::uint64_t monotonic_ns = 0;
  std::uint64_t size_bytes = 0;  // with a count: of one element
  std::uint64_t alignment_bytes = 0;
  std::uint64_t count = 0;        // calloc, reallocarray: elements; else 0
  std::uint64_t class_bytes = 0;  // Tiny, Pool: a block's size; else 0
  // --- What was refused ---
  std::uint64_t refused_bytes = 0;  // of the refused kernel call
  std::uint64_t limit_value = 0;    // meaningful when limit_name is not empty
  std::uint64_t limit_use = 0;
  std::uint64_t limit_needed = 0;
  MemoryFigures memory;  // right after the last refusal
  // --- Who ---
  std::int32_t process_id = 0;
  std::int32_t thread_id = 0;
  std::int32_t error_number =
      0;                       // of the refused kernel call; 0: there is none
  std::uint32_t attempts = 0;  // how often the call was tried in all
  FailureReason reason = FailureReason::kNone;
  FailureDetail detail = FailureDetail::kNone;
  Disposition disposition = Disposition::kPending;
  Call call = Call::kUnknown;
  Route route = Route::kTiny;
  VmCall refused_call = VmCall::kNone;
  std::uint8_t frame_count = 0;
  std::uint8_t reserved = 0;
  char thread_name[16] = {};   // terminated by NUL, like all text here
  char limit_name[24] = {};    // "RLIMIT_AS"; "": no limit explains it
  char limit_source[96] = {};  // where the limit was read
  std::uint64_t frames[kMaxFailureFrames] = {};  // return addresses, innermost
                                                 // first
  // Of the blocks that the program held when the call was first refused.
  std::uint64_t live_bytes = kLiveNotCounted;
};

static_assert(std::is_trivially_copyable_v<FailureEvent>);
static_assert(sizeof(FailureEvent) == 560);  // E1
static_assert(offsetof(FailureEvent, process_id) == 136);
static_assert(offsetof(FailureEvent, reason) == 152);
static_assert(offsetof(FailureEvent, thread_name) == 160);
static_assert(offsetof(FailureEvent, frames) == 296);
static_assert(offsetof(FailureEvent, live_bytes) == 552);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_FAILURE_EVENT_H_
