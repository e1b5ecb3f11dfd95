// A thread's heap with what decides which of its allocations are samples: of
// the heap profile, and for guards.
//
// Owns: both decisions' state. Called by: Allocator, SampledGuards.
// Thread-safety: the heap's owner.
#ifndef HAKMEM_ALLOCATOR_CORE_SAMPLED_HEAP_H_
#define HAKMEM_ALLOCATOR_CORE_SAMPLED_HEAP_H_

#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/guards/guard_sampler.h"
#include "allocator/heap/thread_heap.h"
#include "allocator/profile/sample_gaps.h"

namespace hakmem {

template <const Config& kConfig>
class alignas(64) SampledHeap : public ThreadHeap<kConfig> {
 public:
  using Base = ThreadHeap<kConfig>;

  constexpr SampledHeap(HeapSystem* system, HeapId id, Partition partition = 0)
      : Base(system, id, partition) {
    if (system == nullptr || system->profile_bytes == 0) return;
    // Seeds of neighbours are far apart.
    gaps_.Start(
        system->profile_seed ^ (id + std::uint64_t{1}) * 0x9e3779b97f4a7c15,
        system->profile_bytes);
  }

  // Before the class serves a call by another way than TryPop, and counts it:
  // where its countdown is at its end, the clock is read. True: the call is to
  // be sampled.
  HAK_ALWAYS_INLINE bool IsSampleDue(SizeClass size_class) {
    return this->Cache(size_class).allocations.is_over() &&
           EndCountdown(size_class);
  }
  HAK_NOINLINE void* AllocateSlow(SizeClass size_class, Refusal& refusal) {
    std::uint32_t calls = AllocationCount::kInterval;
    if constexpr (kProfiles<kConfig>) {
      calls = gaps_.Rewind(size_class,
                           this->Cache(size_class).allocations.left(), calls);
    }
    return Base::Allocate(size_class, calls, refusal);
  }
  // As ThreadHeap's; kNoUnit, too, where the call is to be sampled.
  HAK_ALWAYS_INLINE UnitIndex TryTakeSpan(std::uint32_t units) {
    const std::uint64_t bytes = units * kUnitBytes;
    if (gaps_.IsLargeDue(bytes)) [[unlikely]]
      return kNoUnit;
    const UnitIndex first = Base::TryTakeSpan(units);
    if (first == kNoUnit) [[unlikely]]
      return kNoUnit;
    gaps_.PassLarge(bytes);
    return first;
  }
  // Whether a large block that the owner gets is to be sampled.
  HAK_ALWAYS_INLINE bool SampleLarge(std::uint64_t bytes) {
    return gaps_.TakeLarge(bytes);
  }
  // Of the last sample, and that one is freed: see SampleGaps.
  unsigned last_thinning() const { return gaps_.last_thinning(); }
  void NoteSampleFreed(unsigned kind) {
    if (!gaps_.NoteFreed(kind)) return;
    if (kind == SampleGaps::kLarge) {
      gaps_.RedrawLarge();
      return;
    }
    const auto size_class = static_cast<SizeClass>(kind);
    this->Cache(size_class)
        .allocations.Wind(gaps_.Redraw(size_class, AllocationCount::kInterval));
  }

  // Which of the owner's allocations are guarded.
  GuardSampler& sampler() { return sampler_; }

 private:
  HAK_COLD bool EndCountdown(SizeClass size_class) {
    SampleGaps::Turn turn = {false, AllocationCount::kInterval};
    if constexpr (kProfiles<kConfig>) {
      turn = gaps_.End(size_class, AllocationCount::kInterval);
    }
    Base::EndCountdown(size_class, turn.calls);
    return turn.sampled;
  }

  SampleGaps gaps_;
  GuardSampler sampler_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_SAMPLED_HEAP_H_
