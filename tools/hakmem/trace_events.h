// The events of a call trace, in the order in which they happened.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_EVENTS_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/hakmem/trace_blocks.h"

namespace hakmem::tools {

// A stack's number in TraceStacks.
using StackId = std::uint32_t;
inline constexpr StackId kNoStack = 0;

// Each different stack once.
class TraceStacks {
 public:
  TraceStacks() { Add({}); }

  StackId Add(std::vector<std::uint64_t> addresses);
  // Return addresses, innermost first.
  const std::vector<std::uint64_t>& At(StackId id) const { return all_[id]; }
  std::size_t size() const { return all_.size(); }

 private:
  absl::flat_hash_map<std::vector<std::uint64_t>, StackId> ids_;
  std::vector<std::vector<std::uint64_t>> all_;
};

struct CallEvent {
  enum class Kind : std::uint8_t {
    kAllocate,
    kFree,
    kReallocFrom,  // the block is released; often the next event is its heir
    kFailure,      // or a detour
  };
  Kind kind = Kind::kFree;
  std::uint8_t call = 0;  // kAllocate, kFailure: TraceFacts::calls
  bool linked = false;    // kAllocate: the heir of the kReallocFrom before it
  std::uint64_t thread = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t alignment = 0;  // 0: the usual
  StackId stack = kNoStack;
  // kFailure.
  std::uint8_t reason = 0;
  std::uint8_t detail = 0;
  std::uint8_t disposition = 0;
  std::uint64_t attempts = 0;
};

// Calls `use` for each event of all threads. A thread's events keep their
// order; between threads time decides, and at the same time releases come
// first. What can't be decoded is added to `blocks`' damage.
void ReadTraceEvents(TraceBlocks& blocks, TraceStacks& stacks,
                     const std::function<void(const CallEvent&)>& use);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_EVENTS_H_
