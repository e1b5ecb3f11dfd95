#include "tools/hakmem/trace_analysis.h"

#include <algorithm>
#include <bit>
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
                            std::uint64_t bytes) {
  TraceInterval& interval = At(time_ns);
  ++interval.frees;
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

namespace {

std::uint64_t RoundedUp(std::uint64_t size, std::uint64_t unit) {
  const std::uint64_t rest = size % unit;
  return rest == 0 ? size : size - rest + unit;
}

}  // namespace

BlockShape ShapeOf(const TraceFacts& facts, std::uint64_t size,
                   std::uint64_t alignment) {
  size = std::max<std::uint64_t>(size, 1);
  if (facts.class_bytes.empty()) return {TraceRoute::kUnknown, size};
  alignment = std::max<std::uint64_t>(alignment, 1);
  if (size <= facts.max_pool_bytes && alignment <= facts.max_pool_bytes) {
    for (const std::uint32_t bytes : facts.class_bytes) {
      if (bytes < size || bytes % alignment != 0) continue;
      return {
          bytes <= facts.max_tiny_bytes ? TraceRoute::kTiny : TraceRoute::kPool,
          bytes};
    }
  }
  if (size <= facts.max_span_bytes && alignment <= facts.max_span_bytes) {
    return {TraceRoute::kSpan, RoundedUp(size, facts.unit_bytes)};
  }
  return {TraceRoute::kHuge, RoundedUp(size, facts.page_bytes)};
}

void BlockTally::Allocate(std::uint64_t bytes, std::uint64_t block) {
  ++allocations;
  allocated_bytes += bytes;
  block_bytes += block;
  ++live_blocks;
  live_bytes += bytes;
  peak_live_bytes = std::max(peak_live_bytes, live_bytes);
}

void BlockTally::Free(std::uint64_t bytes, std::uint64_t age_ns,
                      bool by_other) {
  --live_blocks;
  live_bytes -= bytes;
  ++freed;
  freed_by_others += by_other ? 1 : 0;
  lifetime_ns += static_cast<double>(age_ns);
}

void BlockTally::Remember(std::uint64_t peaks) {
  if (peaks_seen == peaks) return;
  peaks_seen = peaks;
  blocks_at_peak = live_blocks;
  bytes_at_peak = live_bytes;
}

BlockTally TraceAnalysis::AtPeak(BlockTally tally) const {
  tally.Remember(peaks_);
  return tally;
}

template <typename Use>
void TraceAnalysis::ForTallies(const Block& block, Use use) {
  const TraceRoute route = block.shape.route;
  const bool classed = route == TraceRoute::kTiny || route == TraceRoute::kPool;
  total_.Remember(peaks_);
  use(total_);
  use(routes_[static_cast<std::size_t>(route)]);
  use(classes_[{route, classed ? block.shape.block_bytes : 0}]);
  use(threads_[block.thread].blocks);
  BlockTally& site = sites_[{block.stack, block.call}];
  site.Remember(peaks_);
  use(site);
  use(calls_[block.call]);
}

void TraceAnalysis::Add(const CallEvent& event) {
  ++events_;
  last_ns_ = std::max(last_ns_, event.time_ns);
  ThreadTally& thread = threads_[event.thread];
  thread.first_ns = std::min(thread.first_ns, event.time_ns);
  thread.last_ns = std::max(thread.last_ns, event.time_ns);
  switch (event.kind) {
    case CallEvent::Kind::kAllocate:
      return Allocate(event);
    case CallEvent::Kind::kFree:
    case CallEvent::Kind::kReallocFrom:
      return Release(event);
    case CallEvent::Kind::kFailure:
      return Fail(event);
  }
}

void TraceAnalysis::Allocate(const CallEvent& event) {
  if (event.linked) {
    const auto from = realloc_from_.find(event.thread);
    if (from != realloc_from_.end()) {
      ++(from->second == event.address ? reallocs_in_place_ : reallocs_moved_);
    }
  }
  const auto before = live_.find(event.address);
  if (before != live_.end()) {
    ++lost_frees_;
    const Block lost = before->second;
    live_.erase(before);
    timeline_.Release(last_ns_, lost.shape.route, lost.size);
    ForTallies(lost, [&](BlockTally& tally) {
      tally.Free(lost.size,
                 event.time_ns - std::min(event.time_ns, lost.time_ns), false);
    });
  }
  const Block block = {.size = event.size,
                       .time_ns = event.time_ns,
                       .thread = event.thread,
                       .shape = ShapeOf(facts_, event.size, event.alignment),
                       .stack = event.stack,
                       .call = event.call};
  live_.emplace(event.address, block);
  threads_[event.thread].last_block = event.address;
  timeline_.Allocate(last_ns_, block.shape.route, block.size);
  ForTallies(block, [&](BlockTally& tally) {
    tally.Allocate(block.size, block.shape.block_bytes);
  });
  if (total_.peak_live_bytes > peak_bytes_) {
    peak_bytes_ = total_.peak_live_bytes;
    peak_ns_ = last_ns_;
    ++peaks_;
  }
}

void TraceAnalysis::Release(const CallEvent& event) {
  const bool is_free = event.kind == CallEvent::Kind::kFree;
  if (!is_free) realloc_from_[event.thread] = event.address;
  const auto found = live_.find(event.address);
  if (found == live_.end()) {
    ++unknown_frees_;
    return;
  }
  const Block block = found->second;
  live_.erase(found);
  const bool by_other = block.thread != event.thread;
  const std::uint64_t age_ns =
      event.time_ns - std::min(event.time_ns, block.time_ns);
  ThreadTally& thread = threads_[event.thread];
  ++thread.frees;
  thread.frees_of_others += by_other ? 1 : 0;
  const auto place = static_cast<std::size_t>(
      std::bit_width(std::max<std::uint64_t>(age_ns, 1)) - 1);
  ++lifetimes_[place];
  timeline_.Release(last_ns_, block.shape.route, block.size);
  const bool temporary =
      is_free && !by_other && thread.last_block == event.address;
  if (temporary) thread.last_block = 0;
  ForTallies(block, [&](BlockTally& tally) {
    tally.Free(block.size, age_ns, by_other);
    tally.temporary += temporary ? 1 : 0;
    tally.temporary_bytes += temporary ? block.size : 0;
  });
}

void TraceAnalysis::Fail(const CallEvent& event) {
  const FailureKey key = {event.call, event.reason, event.detail,
                          event.disposition};
  FailureTally& tally = failures_[key];
  if (tally.count++ == 0) {
    tally.first_ns = event.time_ns;
    tally.stack = event.stack;
  }
  tally.last_ns = event.time_ns;
  tally.smallest = std::min(tally.smallest, event.size);
  tally.largest = std::max(tally.largest, event.size);
  timeline_.Fail(last_ns_);
  if (failure_moments_.size() < kMaxMoments) {
    failure_moments_.push_back({.time_ns = event.time_ns,
                                .key = key,
                                .size = event.size,
                                .thread = event.thread});
  }
}

}  // namespace hakmem::tools
