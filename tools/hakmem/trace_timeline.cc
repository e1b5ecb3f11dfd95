#include "tools/hakmem/trace_timeline.h"

#include <algorithm>
#include <limits>

namespace hakmem::tools {
namespace {

TraceInterval Joined(const TraceInterval& first, const TraceInterval& second) {
  TraceInterval both = second;
  both.allocations += first.allocations;
  both.allocated_bytes += first.allocated_bytes;
  both.frees += first.frees;
  both.failures += first.failures;
  both.peak_live_bytes = std::max(first.peak_live_bytes, both.peak_live_bytes);
  return both;
}

}  // namespace

const char* TraceRouteName(TraceRoute route) {
  constexpr const char* kNames[kTraceRoutes] = {"tiny", "pool", "span", "huge",
                                                "unknown"};
  return kNames[static_cast<std::size_t>(route)];
}

std::uint64_t TraceInterval::all_live_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::uint64_t of_route : live_bytes) bytes += of_route;
  return bytes;
}

void TraceTimeline::Double() {
  interval_ns_ *= 2;
  const std::size_t count = (intervals_.size() + 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    intervals_[i] = 2 * i + 1 < intervals_.size()
                        ? Joined(intervals_[2 * i], intervals_[2 * i + 1])
                        : intervals_[2 * i];
  }
  intervals_.resize(count);
}

TraceInterval& TraceTimeline::At(std::uint64_t time_ns) {
  // No honest trace is longer than a century.
  time_ns = std::min(time_ns, std::numeric_limits<std::uint64_t>::max() / 4);
  while (time_ns / interval_ns_ >= kMaxIntervals) Double();
  const auto index = static_cast<std::size_t>(time_ns / interval_ns_);
  while (intervals_.size() <= index) {
    TraceInterval next;
    if (!intervals_.empty()) {
      next.live_bytes = intervals_.back().live_bytes;
      next.live_blocks = intervals_.back().live_blocks;
      next.peak_live_bytes = next.all_live_bytes();
    }
    intervals_.push_back(next);
  }
  return intervals_.back();
}

void TraceTimeline::Allocate(std::uint64_t time_ns, TraceRoute route,
                             std::uint64_t bytes) {
  TraceInterval& interval = At(time_ns);
  ++interval.allocations;
  interval.allocated_bytes += bytes;
  interval.live_bytes[static_cast<std::size_t>(route)] += bytes;
  ++interval.live_blocks;
  interval.peak_live_bytes =
      std::max(interval.peak_live_bytes, interval.all_live_bytes());
}

void TraceTimeline::Release(std::uint64_t time_ns, TraceRoute route,
                            std::uint64_t bytes, bool counts) {
  TraceInterval& interval = At(time_ns);
  if (counts) ++interval.frees;
  interval.live_bytes[static_cast<std::size_t>(route)] -= bytes;
  --interval.live_blocks;
}

void TraceTimeline::Fail(std::uint64_t time_ns) { ++At(time_ns).failures; }

TraceTimeline TraceTimeline::Coarser(std::size_t count) const {
  TraceTimeline coarser;
  const std::size_t step =
      std::max<std::size_t>((intervals_.size() + count - 1) / count, 1);
  coarser.interval_ns_ = interval_ns_ * step;
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    if (i % step == 0) {
      coarser.intervals_.push_back(intervals_[i]);
    } else {
      coarser.intervals_.back() =
          Joined(coarser.intervals_.back(), intervals_[i]);
    }
  }
  return coarser;
}

}  // namespace hakmem::tools
