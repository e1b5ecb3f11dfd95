#include "allocator/guards/sampled_guards.h"

#include "allocator/lookup/lookup.h"
#include "allocator/process/fault_hook.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/unwinder.h"

namespace hakmem {

void SampledGuards::Start(const HeapOptions& options, Region::Window window) {
  unwinding_ = static_cast<Unwinding>(options.unwind);
  if (options.guard_sample != 0) blocks_.Start(window, options.guard_slots);
}

bool SampledGuards::FindLiveInPool(const void* pointer,
                                   LiveBlock& block) const {
  if (!blocks_.FindLive(pointer, block.size_bytes, block.kind)) return false;
  block.guarded = true;
  block.usable_bytes = block.size_bytes;
  block.route = block.size_bytes <= kMaxTinyBytes ? Route::kTiny : Route::kPool;
  block.size_class = kClassCount;
  block.asked_class = kClassCount;
  return true;
}

void SampledGuards::Finish(const void* block, const void* left,
                           const BlockReport& call, const void* frame) {
  if (!blocks_.Contains(block) && !blocks_.Contains(left)) return;
  CallStack stack;
  CaptureCallers(unwinding_, frame, stack);
  if (blocks_.Contains(block)) blocks_.SetStack(block, stack);
  if (blocks_.Contains(left)) blocks_.Free(call, stack);
}

void SampledGuards::Free(const BlockReport& call, const void* frame) {
  CallStack stack;
  CaptureCallers(unwinding_, frame, stack);
  blocks_.Free(call, stack);
}

FaultVerdict SampledGuards::ReportFault(const Fault& fault,
                                        const char* variant) {
  return blocks_.ReportFault(fault, &UnwindAt, variant);
}

}  // namespace hakmem
