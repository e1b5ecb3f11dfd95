#include "benchmarks/traces/plan.h"

#include <algorithm>

namespace hakmem::traces {
namespace {

constexpr const char* kNoMemory = "too large for the memory there is";

}  // namespace

const char* Plan::Load(std::span<const std::uint8_t> trace) {
  const char* const error = Count(trace);
  return error != nullptr ? error : Fill(trace);
}

// How many steps each thread has.
const char* Plan::Count(std::span<const std::uint8_t> trace) {
  Reader reader(trace);
  if (reader.error() != nullptr) return reader.error();
  header_ = reader.header();
  if (!first_step_.Create(header_.threads + std::size_t{1}) ||
      !steps_.Create(header_.events)) {
    return kNoMemory;
  }
  Event event;
  while (reader.Next(event)) ++first_step_[event.thread + 1];
  for (std::uint32_t i = 0; i < header_.threads; ++i) {
    first_step_[i + 1] += first_step_[i];
  }
  return reader.error();
}

const char* Plan::Fill(std::span<const std::uint8_t> trace) {
  MappedArray<State> blocks;
  MappedArray<std::uint64_t> next;  // step, by thread
  if (!blocks.Create(header_.blocks) || !next.Create(header_.threads)) {
    return kNoMemory;
  }
  std::ranges::copy(first_step_.items().first(header_.threads),
                    next.items().begin());
  Reader reader(trace);
  Event event;
  while (reader.Next(event)) {
    State& state = blocks[event.block];
    if (!Follow(event, state)) {
      return "it allocates a block that is alive, or uses one that is not";
    }
    steps_[next[event.thread]++] = {.block = event.block,
                                    .turn = state.turns++,
                                    .size = event.size,
                                    .op = static_cast<std::uint8_t>(event.op),
                                    .alignment_log2 = event.alignment_log2};
  }
  return reader.error();
}

// False if the block is not in the state that the event needs.
bool Plan::Follow(const Event& event, State& state) {
  const bool is_new = event.op != Op::kReallocate && event.op != Op::kFree;
  if (state.alive == is_new) return false;
  state.alive = event.op != Op::kFree;
  live_bytes_ += event.size - state.size;
  state.size = event.size;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return true;
}

}  // namespace hakmem::traces
