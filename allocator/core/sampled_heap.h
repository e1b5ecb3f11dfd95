// A thread's heap with what decides which of its allocations are samples: of
// the heap profile, and for guards.
//
// Owns: the gaps between samples. Called by: Allocator.
// Thread-safety: the heap's owner.
#ifndef HAKMEM_ALLOCATOR_CORE_SAMPLED_HEAP_H_
#define HAKMEM_ALLOCATOR_CORE_SAMPLED_HEAP_H_

#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/heap/thread_heap.h"
#include "allocator/profile/sample_gaps.h"

namespace hakmem {

template <const Config& kConfig>
class alignas(64) SampledHeap : public ThreadHeap<kConfig> {
 public:
  using Base = ThreadHeap<kConfig>;

  constexpr SampledHeap(HeapSystem* system, HeapId id, Partition partition = 0)
      : Base(system, id, partition) {
    if (system == nullptr) return;
    // Seeds of neighbours are far apart.
    gaps_.Start(
        system->sample_seed ^ (id + std::uint64_t{1}) * 0x9e3779b97f4a7c15,
        system->profile_bytes);
    // A guarded block lies in no partition.
    if (partition == 0) gaps_.StartGuards(system->guard_sample);
  }

  // A call of the class has found its countdown at its end: the clock is read,
  // and the call may be a sample.
  HAK_COLD SampleGaps::Turn EndCountdown(SizeClass size_class) {
    const SampleGaps::Turn turn = gaps_.End(size_class, kInterval);
    // Neither sampled blocks nor those with bounds can be shrunk.
    this->takes_larger_ = !turn.sampled && !kConfig.check_bounds &&
                          this->id() > HeapSystem::kUncrowded;
    Base::EndCountdown(size_class, turn.calls);
    return turn;
  }
  HAK_NOINLINE void* AllocateSlow(SizeClass size_class, Refusal& refusal) {
    // So that it ends not in Refill, nor soon after: this looks at the time.
    if (this->Cache(size_class).allocations.left() < kInterval / 2) [[unlikely]]
      Rewind(size_class);
    return Base::Allocate(size_class, refusal);
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
  HAK_COLD void NoteSampleFreed(unsigned kind) {
    if (!gaps_.NoteFreed(kind)) return;
    if (kind == SampleGaps::kLarge) {
      gaps_.RedrawLarge();
      return;
    }
    const auto size_class = static_cast<SizeClass>(kind);
    AllocationCount& allocations = this->Cache(size_class).allocations;
    allocations.Wind(gaps_.Redraw(size_class, allocations.left(), kInterval));
  }
  // Where in its slot a guarded block lies, and the like.
  std::uint32_t Random() { return gaps_.Random(); }

 private:
  static constexpr std::uint32_t kInterval = AllocationCount::kInterval;
  // At the end, a call that stands in for one of another class is no sample.
  HAK_NOINLINE void Rewind(SizeClass size_class) {
    AllocationCount& allocations = this->Cache(size_class).allocations;
    allocations.Wind(
        allocations.is_over()
            ? gaps_.End(size_class, kInterval).calls
            : gaps_.Rewind(size_class, allocations.left(), kInterval));
  }

  SampleGaps gaps_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_SAMPLED_HEAP_H_
