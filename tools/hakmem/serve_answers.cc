#include "tools/hakmem/serve_answers.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
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
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/pprof_profile.h"

namespace hakmem::tools {
namespace {

// Names take memory: one profile at a time has them.
std::mutex g_names;

// Those that can be read: of a program's processes some may end meanwhile.
absl::StatusOr<HeapProfiles> Read(const std::vector<std::uint64_t>& pids,
                                  HeapModules& modules) {
  HeapProfiles all;
  absl::Status failed;
  for (const std::uint64_t pid : pids) {
    absl::StatusOr<HeapProfiles> read =
        ReadHeapOfProcess(absl::StrCat(pid), modules);
    failed.Update(read.status());
    if (read.ok()) all.Append(*std::move(read));
  }
  if (all.last.empty()) return failed;
  return all;
}

// A difference may be below 0, as pprof's numbers may.
void Subtract(const HeapFigures& before, HeapFigures& after) {
  after.samples -= before.samples;
  after.blocks -= before.blocks;
  after.bytes -= before.bytes;
}

template <typename Make>
std::string WithNames(const HeapModules& modules, const HeapProfiles& profiles,
                      HeapKind by, std::uint64_t duration_ns, Make make) {
  const std::lock_guard lock(g_names);
  const std::vector<std::string> no_files;
  std::string made;
  {
    HeapSymbols symbols(modules, {});
    symbols.Resolve(profiles);
    made = make(HeapReport{.files = no_files,
                           .profiles = profiles,
                           .symbols = symbols,
                           .by = by,
                           .duration_ns = duration_ns});
  }
  ::malloc_trim(0);
  return made;
}

// Of one process.
void KeepChanges(const HeapProfile& before, HeapProfile& after) {
  std::map<std::vector<std::uint64_t>, const HeapKinds*> known;
  for (const HeapSite& site : before.sites) {
    known[site.addresses] = &site.figures;
  }
  for (HeapSite& site : after.sites) {
    const auto found = known.find(site.addresses);
    if (found == known.end()) continue;
    Subtract(found->second->live, site.figures.live);
    Subtract(found->second->peak, site.figures.peak);
    Subtract(found->second->allocated, site.figures.allocated);
  }
  std::erase_if(after.sites, [](const HeapSite& site) {
    return site.figures.live.bytes == 0 && site.figures.allocated.bytes == 0;
  });
}

}  // namespace

absl::Status KeepChanges(const HeapProfiles& before, HeapProfiles& after) {
  const std::string whose = WhoseText(after);
  std::vector<HeapProfile> all;
  for (HeapProfile& process : after.last) {
    const auto was = std::ranges::find_if(
        before.last, [&process](const HeapProfile& profile) {
          return AreOfOneRun(profile, process);
        });
    if (was == before.last.end()) continue;
    KeepChanges(*was, process);
    all.push_back(std::move(process));
  }
  after.last = std::move(all);
  if (!after.last.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(whose, " began anew meanwhile"));
}

absl::StatusOr<std::string> PprofOf(const ProfileQuestion& question,
                                    const Pause& pause) {
  HeapModules modules;
  absl::StatusOr<HeapProfiles> read = Read(question.pids, modules);
  if (!read.ok()) return read.status();
  HeapProfiles profiles = *std::move(read);
  std::uint64_t duration_ns = 0;
  if (question.time != absl::ZeroDuration()) {
    const HeapProfiles before = std::move(profiles);
    if (!pause(question.time)) {
      return absl::UnavailableError("this server ends");
    }
    read = Read(question.pids, modules);
    if (!read.ok()) return read.status();
    profiles = *std::move(read);
    absl::Status status = KeepChanges(before, profiles);
    if (!status.ok()) return status;
    duration_ns = profiles.last.front().time_ns - before.last.front().time_ns;
  }
  return Gzipped(
      WithNames(modules, profiles, question.by, duration_ns, HeapAsPprof));
}

absl::StatusOr<std::string> ProfilePageOf(const ProfileQuestion& question) {
  HeapModules modules;
  const absl::StatusOr<HeapProfiles> profiles = Read(question.pids, modules);
  if (!profiles.ok()) return profiles.status();
  return WithNames(modules, *profiles, question.by, 0, HeapAsPage);
}

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
    if (row.now.program == program && row.is_sampled &&
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
