#include "tools/hakmem/serve_answers.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/fleet.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMostOfOneName = 32;
constexpr std::int64_t kMostSeconds = 600;
constexpr std::chrono::seconds kStuck(30);
constexpr char kHtml[] = "text/html; charset=utf-8";

HttpAnswer Failed(const absl::Status& status) {
  const int code = absl::IsInvalidArgument(status)    ? 400
                   : absl::IsPermissionDenied(status) ? 403
                   : absl::IsUnavailable(status)      ? 503
                                                      : 404;
  return {.status = code, .body = absl::StrCat(status.message(), "\n")};
}

std::string_view Parameter(const HttpRequest& request, std::string_view name) {
  const auto found = request.parameters.find(name);
  return found == request.parameters.end() ? std::string_view() : found->second;
}

absl::StatusOr<absl::Duration> TimeFor(const HttpRequest& request) {
  const std::string_view given = Parameter(request, "seconds");
  std::int64_t seconds = 0;
  if (!given.empty() && (!absl::SimpleAtoi(given, &seconds) || seconds < 0 ||
                         seconds > kMostSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("seconds is a number up to ", kMostSeconds));
  }
  return absl::Seconds(seconds);
}

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

HttpAnswer ServeAnswers::To(const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/-/healthy") return Health();
  if (path == "/metrics") {
    return {.type = kOpenMetricsType,
            .body = FleetAsOpenMetrics(fleet_.Look(), most_with_metrics_)};
  }
  if (path == "/processes") {
    return {.type = "application/json", .body = FleetAsJson(fleet_.Look())};
  }
  if (path == "/") {
    return {.type = kHtml,
            .body = FleetAsPage(fleet_.Look(), HostName(),
                                std::chrono::system_clock::now()),
            .refresh_seconds = 10};
  }
  if (path == "/heap") return Profile(request, HeapKind::kLive, true);
  if (path == "/debug/pprof/heap") {
    return Profile(request, HeapKind::kLive, false);
  }
  if (path == "/debug/pprof/allocs") {
    return Profile(request, HeapKind::kAllocated, false);
  }
  // Where a profile lacks names, there are none here.
  if (path == "/debug/pprof/symbol") return {.body = "num_symbols: 0\n"};
  return {.status = 404,
          .body =
              "there are /, /metrics, /processes, /heap?pid=PID, "
              "/debug/pprof/heap?pid=PID, /debug/pprof/allocs?pid=PID and "
              "/-/healthy\n"};
}

HttpAnswer ServeAnswers::Health() const {
  if (!fleet_.IsStuckFor(kStuck)) return {.body = "healthy\n"};
  return {.status = 503,
          .body = absl::StrCat("a look at the processes has taken more than ",
                               kStuck.count(), " s\n")};
}

absl::StatusOr<std::vector<std::uint64_t>> ServeAnswers::PidsFor(
    const HttpRequest& request) {
  std::uint64_t pid = 0;
  if (absl::SimpleAtoi(Parameter(request, "pid"), &pid)) {
    return std::vector<std::uint64_t>{pid};
  }
  const std::string_view program = Parameter(request, "program");
  if (program.empty()) {
    return absl::InvalidArgumentError(
        "name a process, ?pid=PID, or a program, ?program=NAME");
  }
  std::vector<std::uint64_t> pids;
  for (const TopRow& row : fleet_.Look().rows) {
    if (row.now.program == program && row.live_bytes &&
        pids.size() < kMostOfOneName) {
      pids.push_back(row.now.pid);
    }
  }
  if (!pids.empty()) return pids;
  return absl::NotFoundError(
      "no process of that name runs on hakmem and samples");
}

HttpAnswer ServeAnswers::Profile(const HttpRequest& request, HeapKind by,
                                 bool is_page) {
  const absl::StatusOr<std::vector<std::uint64_t>> pids = PidsFor(request);
  if (!pids.ok()) return Failed(pids.status());
  const absl::StatusOr<absl::Duration> time = TimeFor(request);
  if (!time.ok()) return Failed(time.status());
  if (!profiles_.try_acquire()) {
    return {.status = 503, .body = "too many ask for profiles at once\n"};
  }
  const absl::Cleanup release = [this] { profiles_.release(); };
  const ProfileQuestion question = {.pids = *pids, .by = by, .time = *time};
  absl::StatusOr<std::string> made =
      is_page ? ProfilePageOf(question)
              : PprofOf(question,
                        [this](absl::Duration pause) { return Wait(pause); });
  if (!made.ok()) return Failed(made.status());
  return {.type = is_page ? kHtml : "application/octet-stream",
          .body = *std::move(made)};
}

bool ServeAnswers::Wait(absl::Duration time) {
  std::unique_lock lock(mutex_);
  return !ends_.wait_for(lock, absl::ToChronoMilliseconds(time),
                         [this] { return is_ending_; });
}

void ServeAnswers::End() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  ends_.notify_all();
}

}  // namespace hakmem::tools
