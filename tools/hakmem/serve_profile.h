// The heap profiles of running processes for who asks by HTTP.
#ifndef HAKMEM_TOOLS_HAKMEM_SERVE_PROFILE_H_
#define HAKMEM_TOOLS_HAKMEM_SERVE_PROFILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/hakmem/heap_profile.h"

namespace hakmem::tools {

struct ProfileQuestion {
  std::vector<std::uint64_t> pids;
  HeapKind by = HeapKind::kLive;
  // What has changed in that time; 0: what there is now.
  absl::Duration time = absl::ZeroDuration();
};

// False: it was ended early.
using Pause = std::function<bool(absl::Duration)>;

// Leaves what has changed since `before`, also what is less now: below 0, as
// pprof's numbers may be. The error is a sentence.
absl::Status KeepChanges(const HeapProfile& before, HeapProfile& after);

// As `hakmem heap --pprof` writes it, compressed. The error is a sentence.
absl::StatusOr<std::string> PprofOf(const ProfileQuestion& question,
                                    const Pause& pause);

// As `hakmem heap --html` writes it.
absl::StatusOr<std::string> ProfilePageOf(const ProfileQuestion& question);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SERVE_PROFILE_H_
