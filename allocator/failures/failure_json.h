// The lines of a failure trace: one JSON object each, described in
// docs/failure_events.md and docs/failure_events.schema.json.
//
// Owns: the words of the lines. Called by: FailureTrace.
// Thread-safety: any thread; nothing allocates. Safe in signal handlers.
//
// A line that is too long for the text loses its last frames, modules and
// limits, never its form.
#ifndef HAKMEM_ALLOCATOR_FAILURES_FAILURE_JSON_H_
#define HAKMEM_ALLOCATOR_FAILURES_FAILURE_JSON_H_

#include <cstdint>

#include "allocator/base/json_text.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/limit_finder.h"

namespace hakmem {

struct ParsedOptions;

// A line's text never needs more, but for modules and frames, which are then
// left out.
inline constexpr std::size_t kFailureLineBytes = std::size_t{32} * 1024;

// The part that all lines of a process have in common.
struct TraceSource {
  const char* program = "";
  const char* variant = "";
};

// When something happened, and in which process.
struct TraceMoment {
  std::uint64_t time_ns = 0;  // since 1970
  std::uint64_t monotonic_ns = 0;
  int process_id = 0;
};

void StartLine(const TraceSource& source, const TraceMoment& moment,
               const ParsedOptions& options, JsonText& line);

// `limits`: all that were read for this event, or null.
void FailureLine(const TraceSource& source, const FailureEvent& event,
                 const LimitReport* limits, std::uint64_t dropped,
                 JsonText& line);

void MemoryLine(const TraceMoment& moment, const MemoryFigures& memory,
                JsonText& line);

void EndLine(const TraceMoment& moment, std::uint64_t failures,
             std::uint64_t dropped, const MemoryFigures& memory,
             JsonText& line);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_FAILURE_JSON_H_
