#include "allocator/call_trace/call_trace_encoder.h"

#include <bit>

#include "allocator/base/bits.h"

namespace hakmem {
namespace {

using call_trace::PutVarint;
using call_trace::ZigZag;

std::uint8_t* PutFailure(const TraceEvent& event, std::uint8_t* out) {
  *out++ = static_cast<std::uint8_t>(event.call);
  *out++ = static_cast<std::uint8_t>(event.reason);
  *out++ = static_cast<std::uint8_t>(event.detail);
  *out++ = static_cast<std::uint8_t>(event.disposition);
  return PutVarint(event.attempts, out);
}

}  // namespace

void TraceEncoder::StartChunk() {
  last_time_ns_ = 0;
  last_address_ = 0;
  stacks_ = 0;
  ++chunk_;
}

std::uint8_t* TraceEncoder::Encode(const TraceEvent& event, std::uint8_t* out) {
  std::uint8_t first = event.operation;
  const bool sized = event.operation >= call_trace::kFailure;
  if (sized && event.alignment_bytes > kMinAlignmentBytes) {
    first |= call_trace::kHasAlignment;
  }
  if (event.linked) first |= call_trace::kLinked;
  if (!event.stack.empty()) first |= call_trace::kHasStack;
  *out++ = first;
  out = PutVarint(ZigZag(event.time_ns - last_time_ns_), out);
  last_time_ns_ = event.time_ns;
  if (event.operation != call_trace::kFailure) {
    const std::uint64_t address = event.address >> call_trace::kAddressShift;
    out = PutVarint(ZigZag(address - last_address_), out);
    last_address_ = address;
  }
  if (sized) out = PutVarint(event.size_bytes, out);
  if ((first & call_trace::kHasAlignment) != 0) {
    *out++ = static_cast<std::uint8_t>(std::countr_zero(event.alignment_bytes));
  }
  if (event.operation == call_trace::kFailure) out = PutFailure(event, out);
  if (!event.stack.empty()) out = EncodeStack(event.stack, out);
  return out;
}

// The stack's number in this chunk; a new one is followed by its addresses.
std::uint8_t* TraceEncoder::EncodeStack(std::span<const std::uintptr_t> stack,
                                        std::uint8_t* out) {
  const std::uint64_t hash = HashOf(stack.data(), stack.size());
  KnownStack& known = known_[hash % kKnownStacks];
  if (known.hash == hash && known.chunk == chunk_) {
    return PutVarint(known.number, out);
  }
  known = {.hash = hash, .chunk = chunk_, .number = stacks_++};
  out = PutVarint(known.number, out);
  out = PutVarint(stack.size(), out);
  std::uint64_t last = 0;
  for (const std::uintptr_t address : stack) {
    out = PutVarint(ZigZag(address - last), out);
    last = address;
  }
  return out;
}

}  // namespace hakmem
