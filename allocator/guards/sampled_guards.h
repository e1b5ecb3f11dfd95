// Sampled guards: which allocations of a thread are served by guarded blocks,
// and what is told of these.
//
// Owns: the guarded blocks, and what each thread knows of its samples. Called
// by: Allocator's slow paths, while allocations are sampled. Thread-safety: any
// thread; Start before all else.
//
// A thread whose next sample is near waits: its heap pointer is one that has no
// blocks (core's heap_of_thread.h), so that each of its calls comes to Choose,
// until the one to be guarded has been counted (guard_sampler.h). Hot paths
// know nothing of all this.
//
// A thread that waits and from then on only frees has each free take the slow
// path, some 240 instructions for 34, as long as it allocates nothing: one
// thread in 3,000, by the rate of the hardened variant. To let it go would
// need a count of its frees, and the sample would come at a slow path instead
// of at any allocation.
#ifndef HAKMEM_ALLOCATOR_GUARDS_SAMPLED_GUARDS_H_
#define HAKMEM_ALLOCATOR_GUARDS_SAMPLED_GUARDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/config/heap_options.h"
#include "allocator/guards/guard_sampler.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/lookup/lookup.h"
#include "allocator/process/fault_hook.h"
#include "allocator/reports/block_report.h"
#include "allocator/slab/size_class.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

class SampledGuards {
 public:
  explicit constexpr SampledGuards(VirtualMemory& memory)
      : memory_(memory), blocks_(memory) {}
  SampledGuards(const SampledGuards&) = delete;
  SampledGuards& operator=(const SampledGuards&) = delete;

  // Once.
  void Start(const HeapOptions& options, Region::Window window);
  // Whether allocations are sampled.
  bool on() const { return blocks_.on(); }
  GuardedBlocks& blocks() { return blocks_; }
  constexpr const GuardedBlocks& blocks() const { return blocks_; }
  // As FindLiveBlock (lookup.h), of guarded blocks.
  bool FindLive(const void* pointer, LiveBlock& block) const {
    return blocks_.Contains(pointer) && FindLiveInPool(pointer, block);
  }

  // While one exists, the calling thread's allocations are not sampled: what it
  // gets can tell its stack no more.
  class Pause {
   public:
    Pause() { thread_.paused = true; }
    ~Pause() { thread_.paused = false; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };
  static bool paused() { return thread_.paused; }

  // The choice for an allocation of the class by the thread that owns `heap`.
  struct Choice {
    // The heap, as ever, and nothing is counted.
    bool usual = true;
    void* block = nullptr;  // a guarded block; null: the heap
  };
  // If it is not usual, and the heap is to serve it, CountServed follows.
  template <typename Heap>
  Choice Choose(Heap& heap, SizeClass size_class, std::size_t size_bytes,
                std::size_t alignment_bytes);

  // The end of a call that was served by guarded blocks, at the entry point:
  // they get their stack. `left`: the block that a realloc has left for this,
  // or null. `frame`: see FailureReporter.
  HAK_COLD void Finish(const void* block, const void* left,
                       const BlockReport& call, const void* frame);
  HAK_COLD void Free(const BlockReport& call, const void* frame);

  // For a handler of faults.
  HAK_COLD FaultVerdict ReportFault(const Fault& fault, const char* variant);

 private:
  // The state of one thread.
  struct Thread {
    const void* heap;  // the thread's, last seen
    bool paused;
  };

  HAK_COLD bool FindLiveInPool(const void* pointer, LiveBlock& block) const;
  template <typename Heap>
  void Meet(Heap& heap);
  template <typename Heap>
  static std::uint32_t ServedBy(Heap& heap, SizeClass size_class) {
    return static_cast<std::uint32_t>(
        heap.Cache(size_class).allocations.value());
  }

  static constinit inline thread_local Thread thread_ HAK_TLS_INITIAL_EXEC = {};

  VirtualMemory& memory_;
  GuardedBlocks blocks_;
  // HAKMEM_GUARD_SAMPLE, HAKMEM_UNWIND. Written by Start.
  std::uint64_t mean_ = 0;
  Unwinding unwinding_ = Unwinding::kTables;
};

// A thread has got this heap, which may have served another before.
template <typename Heap>
void SampledGuards::Meet(Heap& heap) {
  GuardSampler& sampler = heap.sampler();
  thread_.heap = &heap;
  if (sampler.mean() != mean_) sampler.Start(memory_.Random(), mean_);
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    sampler.SetSeen(size_class, ServedBy(heap, size_class));
  }
}

template <typename Heap>
auto SampledGuards::Choose(Heap& heap, SizeClass size_class,
                           std::size_t size_bytes, std::size_t alignment_bytes)
    -> Choice {
  GuardSampler& sampler = heap.sampler();
  if (thread_.heap != &heap || sampler.mean() != mean_) Meet(heap);
  const bool chosen = sampler.Choose(size_class, ServedBy(heap, size_class));
  if (!chosen && !sampler.waiting()) return {};
  Choice choice = {.usual = false};
  if (chosen) {
    choice.block =
        blocks_.Allocate(size_bytes, alignment_bytes, sampler.Random());
  }
  return choice;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_GUARDS_SAMPLED_GUARDS_H_
