// All that is known of a block when something is wrong with it.
//
// Owns: nothing. Called by: every layer that reports. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_REPORTS_BLOCK_REPORT_H_
#define HAKMEM_ALLOCATOR_REPORTS_BLOCK_REPORT_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/route.h"

namespace hakmem {

// The call that is given the pointer; the words of a report follow from it.
enum class PointerUse : std::uint8_t {
  kAllocate,
  kFree,
  kRealloc,
  kUsableSize,
  kCheckHeap,
  kBackgroundCheck,  // by the helper thread
  kExitCheck,
  // And the form of each that is told how long the target is.
  kMemcpy,
  kMemmove,
  kMempcpy,
  kMemset,
  kStrcpy,
  kStpcpy,
  kStrncpy,
  kStpncpy,
  kStrcat,
  kStrncat
};
const char* UseName(PointerUse use);  // "malloc", "free", …

struct GuardedBlockFacts;

struct BlockReport {
  const void* pointer = nullptr;
  PointerUse use = PointerUse::kFree;
  const char* variant = "";  // Config::name
  Route route = Route::kTiny;
  std::size_t block_bytes = 0;    // its class's size, or the span's
  std::uint32_t owner_heap = 0;   // 0: none (spans, released slabs)
  std::uint32_t caller_heap = 0;  // 0: the thread has none
  // Facts of a guarded block, instead of route, bytes and owner.
  const GuardedBlockFacts* guarded = nullptr;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_BLOCK_REPORT_H_
