// Sampled guards: the blocks that serve the allocations that are samples
// (profile/sample_gaps.h), and what is told of these.
//
// Owns: the guarded blocks. Called by: Allocator's slow paths. Thread-safety:
// any thread; Start before all else.
#ifndef HAKMEM_ALLOCATOR_GUARDS_SAMPLED_GUARDS_H_
#define HAKMEM_ALLOCATOR_GUARDS_SAMPLED_GUARDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/config/heap_options.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/reports/block_report.h"
#include "allocator/slab/size_class.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

struct LiveBlock;

class SampledGuards {
 public:
  explicit constexpr SampledGuards(VirtualMemory& memory) : blocks_(memory) {}
  SampledGuards(const SampledGuards&) = delete;
  SampledGuards& operator=(const SampledGuards&) = delete;

  // Once.
  void Start(const HeapOptions& options, Region::Window window);
  // Whether there may be guarded blocks.
  bool on() const { return blocks_.has_slots(); }
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
    Pause() { paused_ = true; }
    ~Pause() { paused_ = false; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };
  static bool paused() { return paused_; }

  // For an allocation that is to be guarded. Null: it cannot be.
  HAK_COLD void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes,
                          std::uint32_t random) {
    return paused() ? nullptr
                    : blocks_.Allocate(size_bytes, alignment_bytes, random);
  }

  // The end of a call that was served by guarded blocks, at the entry point:
  // they get their stack. `left`: the block that a realloc has left for this,
  // or null. `frame`: see FailureReporter.
  HAK_COLD void Finish(const void* block, const void* left,
                       const BlockReport& call, const void* frame);
  HAK_COLD void Free(const BlockReport& call, const void* frame);

  // For a handler of faults.
  HAK_COLD FaultVerdict ReportFault(const Fault& fault, const char* variant);

 private:
  HAK_COLD bool FindLiveInPool(const void* pointer, LiveBlock& block) const;

  static constinit inline thread_local bool paused_ HAK_TLS_INITIAL_EXEC =
      false;

  GuardedBlocks blocks_;
  // HAKMEM_UNWIND. Written by Start.
  Unwinding unwinding_ = Unwinding::kTables;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_GUARDS_SAMPLED_GUARDS_H_
