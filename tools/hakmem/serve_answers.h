// What `hakmem serve` answers; for any thread.
#ifndef HAKMEM_TOOLS_HAKMEM_SERVE_ANSWERS_H_
#define HAKMEM_TOOLS_HAKMEM_SERVE_ANSWERS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/hakmem/fleet.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/http_server.h"

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
// pprof's numbers may be. A process that is not in both is left out. The error,
// where there is no other, is a sentence.
absl::Status KeepChanges(const HeapProfiles& before, HeapProfiles& after);

// As `hakmem heap --pprof` writes it, compressed. The error is a sentence.
absl::StatusOr<std::string> PprofOf(const ProfileQuestion& question,
                                    const Pause& pause);

// As `hakmem heap --html` writes it.
absl::StatusOr<std::string> ProfilePageOf(const ProfileQuestion& question);

class ServeAnswers {
 public:
  explicit ServeAnswers(std::size_t most_with_metrics)
      : most_with_metrics_(most_with_metrics) {}

  HttpAnswer To(const HttpRequest& request);
  // So that growth is known before somebody asks.
  void Look() { fleet_.Look(); }
  // Who waits does so no longer.
  void End();

 private:
  HttpAnswer Health() const;
  HttpAnswer Profile(const HttpRequest& request, HeapKind by, bool is_page);
  absl::StatusOr<std::vector<std::uint64_t>> PidsFor(
      const HttpRequest& request);
  // False: the server ends.
  bool Wait(absl::Duration time);

  // Half of the threads are for short answers.
  static constexpr int kProfiles = HttpServer::kThreads / 2;

  const std::size_t most_with_metrics_;
  Fleet fleet_;
  std::counting_semaphore<kProfiles> profiles_{kProfiles};
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_ending_ = false;  // under mutex_
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SERVE_ANSWERS_H_
