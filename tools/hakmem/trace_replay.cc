#include "tools/hakmem/trace_replay.h"

#include <utility>

#include "benchmarks/traces/converter.h"

namespace hakmem::tools {

using traces::Call;

void TraceReplay::Add(const CallEvent& event) {
  const auto next = static_cast<std::uint32_t>(threads_.size());
  const std::uint32_t thread =
      threads_.try_emplace(event.thread, next).first->second;
  if (thread == realloc_from_.size()) realloc_from_.emplace_back();
  if (event.kind == CallEvent::Kind::kAllocate) {
    return Allocate(event, thread);
  }
  Settle(thread);
  if (event.kind == CallEvent::Kind::kFailure) return;
  realloc_from_[thread] = event.address;
  if (event.kind == CallEvent::Kind::kFree) Settle(thread);
}

void TraceReplay::Allocate(const CallEvent& event, std::uint32_t thread) {
  traces::RawRecord record = {.address = event.address,
                              .argument = 0,
                              .size = event.size,
                              .thread = thread,
                              .call = Call::kMalloc};
  if (event.linked && realloc_from_[thread].has_value()) {
    record.call = Call::kRealloc;
    record.argument = *std::exchange(realloc_from_[thread], std::nullopt);
  } else if (event.alignment != 0) {
    record.call = Call::kAligned;
    record.argument = event.alignment;
  } else if (NameOf(facts_.calls, event.call) == "calloc") {
    record.call = Call::kCalloc;
  }
  if (record.call != Call::kRealloc) Settle(thread);
  records_.push_back(record);
}

void TraceReplay::Settle(std::uint32_t thread) {
  if (!realloc_from_[thread].has_value()) return;
  records_.push_back(
      {.address = *std::exchange(realloc_from_[thread], std::nullopt),
       .argument = 0,
       .size = 0,
       .thread = thread,
       .call = Call::kFree});
}

TraceReplay::File TraceReplay::Finish(std::uint64_t max_events) {
  for (std::uint32_t i = 0; i < realloc_from_.size(); ++i) Settle(i);
  traces::Conversion conversion = traces::Convert(records_, max_events);
  return {.bytes = std::move(conversion.trace),
          .events = conversion.events,
          .left_out = conversion.left_out};
}

}  // namespace hakmem::tools
