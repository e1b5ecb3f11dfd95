// Allocation rate and live memory over time, in a bounded number of intervals
// of equal length, however long the trace is.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_TIMELINE_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hakmem::tools {

enum class TraceRoute : std::uint8_t { kTiny, kPool, kSpan, kHuge, kUnknown };
inline constexpr std::size_t kTraceRoutes = 5;
const char* TraceRouteName(TraceRoute route);

struct TraceInterval {
  std::uint64_t allocations = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t frees = 0;
  std::uint64_t failures = 0;
  // When the interval ends.
  std::array<std::uint64_t, kTraceRoutes> live_bytes = {};
  std::uint64_t live_blocks = 0;
  std::uint64_t peak_live_bytes = 0;  // within it

  std::uint64_t all_live_bytes() const;
};

class TraceTimeline {
 public:
  static constexpr std::size_t kMaxIntervals = 512;

  std::uint64_t interval_ns() const { return interval_ns_; }
  // The first begins at time 0.
  const std::vector<TraceInterval>& intervals() const { return intervals_; }

  // Times never go back.
  void Allocate(std::uint64_t time_ns, TraceRoute route, std::uint64_t bytes);
  // `counts`: it is a release of the program's, not half of a realloc.
  void Release(std::uint64_t time_ns, TraceRoute route, std::uint64_t bytes,
               bool counts);
  void Fail(std::uint64_t time_ns);

  // The same in `count` longer intervals at most.
  TraceTimeline Coarser(std::size_t count) const;

 private:
  TraceInterval& At(std::uint64_t time_ns);
  void Double();

  std::uint64_t interval_ns_ = 1'000'000;
  std::vector<TraceInterval> intervals_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_TIMELINE_H_
