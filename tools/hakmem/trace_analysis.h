// What a call trace says of the program: totals, classes, routes, threads, call
// sites, lifetimes, failures and detours.
//
// All numbers are of what the trace has; a sampled trace has about 1 in
// TraceFacts::sample of the program's.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_ANALYSIS_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_ANALYSIS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/hakmem/trace_events.h"

namespace hakmem::tools {

enum class TraceRoute : std::uint8_t { kTiny, kPool, kSpan, kHuge, kUnknown };
inline constexpr std::size_t kTraceRoutes = 5;
const char* TraceRouteName(TraceRoute route);

struct TraceInterval {
  // A realloc is one of both.
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

// Allocation rate and live memory over time, in a bounded number of intervals
// of equal length, however long the trace is.
class TraceTimeline {
 public:
  static constexpr std::size_t kMaxIntervals = 512;

  std::uint64_t interval_ns() const { return interval_ns_; }
  // The first begins at time 0.
  const std::vector<TraceInterval>& intervals() const { return intervals_; }

  // Times never go back.
  void Allocate(std::uint64_t time_ns, TraceRoute route, std::uint64_t bytes);
  void Release(std::uint64_t time_ns, TraceRoute route, std::uint64_t bytes);
  void Fail(std::uint64_t time_ns);

  // The same in `count` longer intervals at most.
  TraceTimeline Coarser(std::size_t count) const;

 private:
  TraceInterval& At(std::uint64_t time_ns);
  void Double();

  std::uint64_t interval_ns_ = 1'000'000;
  std::vector<TraceInterval> intervals_;
};

// Which block a size gets.
struct BlockShape {
  TraceRoute route = TraceRoute::kUnknown;
  std::uint64_t block_bytes = 0;  // Tiny, Pool: the class; else as rounded
};
BlockShape ShapeOf(const TraceFacts& facts, std::uint64_t size,
                   std::uint64_t alignment);

// What a set of blocks went through.
struct BlockTally {
  std::uint64_t allocations = 0;
  std::uint64_t allocated_bytes = 0;  // as asked for
  std::uint64_t block_bytes = 0;      // of the blocks that were given
  std::uint64_t live_blocks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t freed = 0;
  std::uint64_t freed_by_others = 0;  // by another thread than allocated it
  // Of the freed ones, summed: ten million blocks have an hour each in days.
  double lifetime_ns = 0;
  // Freed before their thread asked for another block.
  std::uint64_t temporary = 0;
  std::uint64_t temporary_bytes = 0;
  // What was live when all blocks of the trace together were most: the first
  // change after a peak remembers what was there.
  std::uint64_t peaks_seen = 0;
  std::uint64_t blocks_at_peak = 0;
  std::uint64_t bytes_at_peak = 0;

  std::uint64_t mean_lifetime_ns() const {
    const auto count = static_cast<double>(freed);
    return freed == 0 ? 0 : static_cast<std::uint64_t>(lifetime_ns / count);
  }
  void Remember(std::uint64_t peaks);
  void Allocate(std::uint64_t bytes, std::uint64_t block);
  void Free(std::uint64_t bytes, std::uint64_t age_ns, bool by_other);
};

struct ThreadTally {
  BlockTally blocks;  // allocated by it
  std::uint64_t frees = 0;
  std::uint64_t frees_of_others = 0;
  std::uint64_t first_ns = ~std::uint64_t{0};
  std::uint64_t last_ns = 0;
  std::uint64_t last_block = 0;  // its address; 0: it has been freed
};

struct FailureTally {
  std::uint64_t count = 0;
  std::uint64_t smallest = ~std::uint64_t{0};
  std::uint64_t largest = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  StackId stack = kNoStack;  // of the first
};

class TraceAnalysis {
 public:
  // A lifetime of 2^i to 2^(i+1) ns is in place i.
  static constexpr std::size_t kLifetimePlaces = 64;
  // Numbers of calls, reasons, details, dispositions.
  using FailureKey =
      std::tuple<std::uint8_t, std::uint8_t, std::uint8_t, std::uint8_t>;
  struct FailureMoment {
    std::uint64_t time_ns = 0;
    FailureKey key;
    std::uint64_t size = 0;
    std::uint64_t thread = 0;
  };
  static constexpr std::size_t kMaxMoments = 10000;

  explicit TraceAnalysis(const TraceFacts& facts) : facts_(facts) {}

  void Add(const CallEvent& event);

  std::uint64_t events() const { return events_; }
  std::uint64_t duration_ns() const { return last_ns_; }
  const BlockTally& total() const { return total_; }
  // When most bytes were live.
  std::uint64_t peak_ns() const { return peak_ns_; }
  // A site's tally, with what was live then.
  BlockTally AtPeak(BlockTally tally) const;
  const TraceTimeline& timeline() const { return timeline_; }
  using ClassKey = std::pair<TraceRoute, std::uint64_t>;
  // Tiny and Pool by class; the others are one each, with 0 bytes.
  const std::map<ClassKey, BlockTally>& classes() const { return classes_; }
  const std::array<BlockTally, kTraceRoutes>& routes() const { return routes_; }
  const std::map<std::uint64_t, ThreadTally>& threads() const {
    return threads_;
  }
  // By stack and call.
  using SiteKey = std::pair<StackId, std::uint8_t>;
  const absl::flat_hash_map<SiteKey, BlockTally>& sites() const {
    return sites_;
  }
  const std::map<std::uint8_t, BlockTally>& calls() const { return calls_; }
  const std::array<std::uint64_t, kLifetimePlaces>& lifetimes() const {
    return lifetimes_;
  }
  const std::map<FailureKey, FailureTally>& failures() const {
    return failures_;
  }
  // The first kMaxMoments failures.
  const std::vector<FailureMoment>& failure_moments() const {
    return failure_moments_;
  }
  std::uint64_t reallocs_in_place() const { return reallocs_in_place_; }
  std::uint64_t reallocs_moved() const { return reallocs_moved_; }
  // Blocks that were released before the trace, or whose allocation it has not.
  std::uint64_t unknown_frees() const { return unknown_frees_; }
  // Blocks whose release the trace has not: their address came again.
  std::uint64_t lost_frees() const { return lost_frees_; }

 private:
  struct Block {
    std::uint64_t size = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t thread = 0;
    BlockShape shape;
    StackId stack = kNoStack;
    std::uint8_t call = 0;
  };

  void Allocate(const CallEvent& event);
  void Release(const CallEvent& event);
  void Fail(const CallEvent& event);
  // Calls `use` with each tally that the block belongs to.
  template <typename Use>
  void ForTallies(const Block& block, Use use);

  const TraceFacts& facts_;
  std::uint64_t events_ = 0;
  std::uint64_t last_ns_ = 0;
  BlockTally total_;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t peaks_ = 0;  // how often more was live than ever before
  std::uint64_t peak_ns_ = 0;
  TraceTimeline timeline_;
  std::map<ClassKey, BlockTally> classes_;
  std::array<BlockTally, kTraceRoutes> routes_;
  std::map<std::uint64_t, ThreadTally> threads_;
  absl::flat_hash_map<SiteKey, BlockTally> sites_;
  std::map<std::uint8_t, BlockTally> calls_;
  std::array<std::uint64_t, kLifetimePlaces> lifetimes_ = {};
  std::map<FailureKey, FailureTally> failures_;
  std::vector<FailureMoment> failure_moments_;
  std::uint64_t reallocs_in_place_ = 0;
  std::uint64_t reallocs_moved_ = 0;
  std::uint64_t unknown_frees_ = 0;
  std::uint64_t lost_frees_ = 0;
  absl::flat_hash_map<std::uint64_t, Block> live_;  // by address
  // Each thread's last kReallocFrom.
  absl::flat_hash_map<std::uint64_t, std::uint64_t> realloc_from_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_ANALYSIS_H_
