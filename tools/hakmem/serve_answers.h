// What `hakmem serve` answers; for any thread.
#ifndef HAKMEM_TOOLS_HAKMEM_SERVE_ANSWERS_H_
#define HAKMEM_TOOLS_HAKMEM_SERVE_ANSWERS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/hakmem/fleet.h"
#include "tools/hakmem/http_server.h"
#include "tools/hakmem/serve_profile.h"

namespace hakmem::tools {

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
