#include "allocator/ace/retention.h"

#include <algorithm>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

void Retention::Start(const HeapOptions& options, bool separate_classes,
                      std::uint64_t now_ms) {
  if (separate_classes) slack_ = kSeparateSlack;
  limit_.Start(options.heap_limit_bytes, options.find_memory_limit);
  SetDecay(options.decay_ms, now_ms);
}

std::uint64_t Retention::SetDecay(std::uint64_t decay_ms,
                                  std::uint64_t now_ms) {
  const std::uint64_t before = decay_ms_;
  decay_ms_ = decay_ms;
  interval_began_ms_ = now_ms;
  return before;
}

void Retention::NoteExcess(std::uint32_t granted, std::uint64_t units) {
  if (granted < kMidRunUnits) return;
  const std::uint64_t share =
      granted >= kUnitsPerSuperSlab ? slack_.long_run_share : kMidRunShare;
  long_run_slack_units_ = std::max(
      long_run_slack_units_,
      std::min(long_run_slack_units_ + units, recent_peak_units() / share));
}

// When nobody looked at the time for a further interval, what was taken was
// taken before that. What was dirty and too short for the runs that came and
// went is kept while these take as much in an interval.
Retention::Interval Retention::StartInterval(std::uint64_t now_ms) {
  const bool quiet = now_ms - last_release_ms_ >= IntervalMs();
  const bool late = now_ms - interval_began_ms_ >= 2 * IntervalMs();
  earlier_peak_units_ = peak_units_;
  peak_units_ = granted_units_;
  earlier_taken_units_ = late ? 0 : taken_units_;
  taken_units_ = 0;
  low_units_ = granted_units_;
  const std::uint64_t peak = recent_peak_units();
  const std::uint64_t most =
      std::max(std::min(long_run_units_, peak / slack_.long_run_share),
               std::min(mid_run_units_, peak / kMidRunShare));
  long_run_slack_units_ -=
      DivideRoundUp(long_run_slack_units_, kSlackFallShare);
  long_run_slack_units_ = std::min(long_run_slack_units_, most);
  long_run_units_ = 0;
  mid_run_units_ = 0;
  interval_began_ms_ = now_ms;
  return {.quiet = quiet, .kept_units = quiet ? 0 : long_run_slack_units_};
}

void Retention::CheckInvariants() const {
  HAK_CHECK_LE(low_units_, granted_units_);   // RT1
  HAK_CHECK_LE(granted_units_, peak_units_);  // RT1
}

}  // namespace hakmem
