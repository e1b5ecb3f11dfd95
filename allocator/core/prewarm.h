// Prewarm: blocks that are ready before they are asked for.
//
// Owns: nothing. Called by: frontend. Thread-safety: any thread, with its own
// `self`.
#ifndef HAKMEM_ALLOCATOR_CORE_PREWARM_H_
#define HAKMEM_ALLOCATOR_CORE_PREWARM_H_

#include <algorithm>
#include <cstddef>

#include "allocator/ace/resting_spans.h"
#include "allocator/base/compiler.h"
#include "allocator/core/allocator_hot.h"
#include "allocator/guards/guarded_blocks.h"

namespace hakmem {

// Has up to `count` blocks of `size_bytes`, at most kMaxPoolBytes, ready for
// this thread, with their pages; returns how many. ACE keeps what the thread's
// budgets do not hold. Meanwhile the blocks are linked by their first words;
// the one allocated first is freed last, so that it is the next to be handed
// out. The longest sizes are spans where blocks have canaries.
template <const Config& kConfig>
HAK_COLD std::size_t Prewarm(Allocator<kConfig>& allocator,
                             SampledHeap<kConfig>*& self,
                             std::size_t size_bytes, std::size_t count) {
  using Core = Allocator<kConfig>;
  size_bytes = std::max(size_bytes, sizeof(void*));
  if (size_bytes > kMaxPoolBytes) return 0;
  allocator.EnsureStarted();
  const std::size_t page_bytes = allocator.ace().memory().PageBytes();
  void** blocks = nullptr;
  std::size_t ready = 0;
  // Some will rest when they are freed.
  std::size_t resting = 0;
  if (kConfig.delay_reuse && count != 0) {
    resting =
        size_bytes < Core::kPoolEnd
            ? MaxResting(Core::Hooks::ClassFor(size_bytes, kMinAlignmentBytes))
            : RestingSpans::kMaxSpans;
  }
  // None of these is to be a sample.
  const GuardedBlocks::Pause pause;
  for (; ready < count || ready - count < resting; ++ready) {
    void** block =
        static_cast<void**>(allocator.AllocateOnce(self, size_bytes).block);
    if (block == nullptr) break;
    for (std::size_t at = page_bytes; at < size_bytes; at += page_bytes) {
      reinterpret_cast<volatile char*>(block)[at] = 0;
    }
    *block = static_cast<void*>(blocks);
    blocks = block;
  }
  while (blocks != nullptr) {
    void** next = static_cast<void**>(*blocks);
    allocator.Free(self, static_cast<void*>(blocks));
    blocks = next;
  }
  return std::min(ready, count);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_PREWARM_H_
