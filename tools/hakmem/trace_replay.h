// A call trace as an input of the benchmarks' replayer (benchmarks/traces).
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_REPLAY_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_REPLAY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "benchmarks/traces/raw_record.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"

namespace hakmem::tools {

class TraceReplay {
 public:
  struct File {
    std::string bytes;
    std::uint64_t events = 0;
    std::uint64_t left_out = 0;  // what does not fit together
  };

  explicit TraceReplay(const TraceFacts& facts) : facts_(facts) {}

  void Add(const CallEvent& event);
  // After the last event; of the calls the first `max_events`.
  File Finish(
      std::uint64_t max_events = std::numeric_limits<std::uint64_t>::max());

 private:
  void Allocate(const CallEvent& event, std::uint32_t thread);
  // A kReallocFrom without an heir only releases.
  void Settle(std::uint32_t thread);

  const TraceFacts& facts_;
  std::vector<traces::RawRecord> records_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> threads_;
  std::vector<std::optional<std::uint64_t>> realloc_from_;  // by thread
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_REPLAY_H_
