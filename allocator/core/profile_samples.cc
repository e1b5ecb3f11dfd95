#include "allocator/core/profile_samples.h"

#include <atomic>

#include "allocator/core/shrunk_blocks.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

void KeepSample(Ace& ace, HeapProfile& profile, const void* block,
                const void* frame, unsigned thinning) {
  LiveBlock live;
  if (!profile.on() || !FindLiveBlock(ace, block, live) || !live.is_sampled()) {
    return;
  }
  CallStack stack;
  profile.CaptureCaller(frame, stack);
  profile.Add(block, live.usable_bytes, live.size_class, stack, thinning);
}

HeapProfileTable::Node EndSample(Ace& ace, HeapProfile& profile, void* pointer,
                                 const LiveBlock& block) {
  const unsigned code =
      block.route >= Route::kSpan ? kLargeCode : block.size_class + 1U;
  HeaderByte header = kSampledHeader;
  // Relaxed: whoever resized a large block has released it, which an exchange
  // in between passes on to who claims it.
  if (HeaderAt(ace, pointer)
          .compare_exchange_strong(header, MakeHeader(BlockState::kLive, code),
                                   std::memory_order_relaxed)) {
    return profile.Remove(pointer);
  }
  return {};
}

void PutBackSample(Ace& ace, HeapProfile& profile, void* pointer,
                   const HeapProfileTable::Node& sample) {
  HeaderByte header = kLiveLarge;
  // Relaxed: as in EndSample.
  if (sample.block != 0 &&
      HeaderAt(ace, pointer)
          .compare_exchange_strong(header, kSampledHeader,
                                   std::memory_order_relaxed)) {
    profile.PutBack(sample);
  }
}

bool SampleStays(Ace& ace, HeapProfile& profile, void* pointer,
                 const LiveBlock& block, std::size_t size_bytes) {
  const std::size_t block_bytes = ClassBytes(block.size_class);
  if (size_bytes > block_bytes ||
      (ClassOf(size_bytes) != block.size_class &&
       (IsTiny(block.size_class) || size_bytes < block_bytes / 2))) {
    return false;
  }
  return profile.SetAskedClass(pointer, ClassOf(size_bytes)) ||
         SetAskedClass(HeaderAt(ace, pointer), block.asked_class,
                       ClassOf(size_bytes));
}

}  // namespace hakmem
