// What is known of a block when something is wrong with it.
//
// Owns: nothing. Called by: every layer that reports. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_DIAG_BLOCK_REPORT_H_
#define HAKMEM_ALLOCATOR_DIAG_BLOCK_REPORT_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

// What a call does to the pointer; the words of a report follow from it.
enum class PointerUse : std::uint8_t {
  kAllocate,
  kFree,
  kRealloc,
  kUsableSize,
  kCheckHeap,
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

enum class Route : std::uint8_t { kTiny, kPool, kSpan, kHuge };
inline constexpr unsigned kRouteCount = 4;
const char* RouteName(Route route);  // "tiny", "pool", "span", "huge"

struct BlockReport {
  const void* pointer = nullptr;
  PointerUse use = PointerUse::kFree;
  const char* variant = "";  // Config::name
  Route route = Route::kTiny;
  std::size_t block_bytes = 0;    // its class's size, or the span's
  std::uint32_t owner_heap = 0;   // 0: none (spans, released slabs)
  std::uint32_t caller_heap = 0;  // 0: the thread has none
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_DIAG_BLOCK_REPORT_H_
