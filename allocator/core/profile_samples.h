// Sampled blocks: those of which the heap profile takes a sample.
//
// Owns: nothing; their headers are kSampledHeader (block_header.h, H5). Called
// by: Allocator's slow paths. Thread-safety: any thread; one exchange decides
// between those that change or free a block at once.
//
// A block gets its header where it is handed out, and its sample, with the
// stack, at the end of the call (Recover). Whoever frees it makes it one like
// others first. Where it stays in place, so does its sample; a large block that
// is resized counts as a new one.
#ifndef HAKMEM_ALLOCATOR_CORE_PROFILE_SAMPLES_H_
#define HAKMEM_ALLOCATOR_CORE_PROFILE_SAMPLES_H_

#include <atomic>
#include <cstddef>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/lookup/lookup.h"
#include "allocator/profile/heap_profile.h"
#include "allocator/profile/heap_profile_table.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

// The end of a call, whose block may be sampled, or not. `frame`: see
// FailureReporter. `thinning`: of its heap's last sample.
HAK_COLD void KeepSample(Ace& ace, HeapProfile& profile, const void* block,
                         const void* frame, unsigned thinning);

// A sampled block is one like others. Whoever comes second finds another
// header, and leaves it. Returns its sample, if there was one.
HAK_COLD HeapProfileTable::Node EndSample(Ace& ace, HeapProfile& profile,
                                          void* pointer,
                                          const LiveBlock& block);
// A large block, live and without one, has that sample again.
HAK_COLD void PutBackSample(Ace& ace, HeapProfile& profile, void* pointer,
                            const HeapProfileTable::Node& sample);

// Resizes a large block, which is one like others meanwhile; if the resize is
// refused, its sample stays.
template <typename Resize>
HAK_COLD auto WithoutSample(Ace& ace, HeapProfile& profile, void* pointer,
                            const LiveBlock& block, const Resize& resize) {
  const auto sample = EndSample(ace, profile, pointer, block);
  const auto got = resize();
  if (got.block == nullptr) PutBackSample(ace, profile, pointer, sample);
  return got;
}

// Without bounds: whether a slab's sampled block, asked to be of this size,
// stays where it is, as any other would. The sample knows then what was asked
// for; if it was lost, the header does, of a block that is one like others.
HAK_COLD bool SampleStays(Ace& ace, HeapProfile& profile, void* pointer,
                          const LiveBlock& block, std::size_t size_bytes);

// With bounds: changes a slab's block, which is one like others meanwhile, and
// keeps its sample if it has one.
template <typename Change>
HAK_COLD bool WhileUnmarked(Ace& ace, HeapProfile& profile, void* pointer,
                            LiveBlock block, const Change& change) {
  std::atomic<HeaderByte>& header = HeaderAt(ace, pointer);
  HeaderByte live = MakeHeader(BlockState::kLive, block.size_class + 1U);
  HeaderByte found = kSampledHeader;
  const bool marked =
      header.compare_exchange_strong(found, live, std::memory_order_relaxed);
  block.asked_class = block.size_class;
  const bool done = change(block);
  // Another thread may have freed it.
  if (marked && !header.compare_exchange_strong(live, kSampledHeader,
                                                std::memory_order_relaxed)) {
    profile.Remove(pointer);
  }
  return done;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_PROFILE_SAMPLES_H_
