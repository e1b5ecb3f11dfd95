#include "tools/hakmem/top_processes.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/input_file.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_statistics.h"
#include "tools/hakmem/resident_parts.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kContainerIdDigits = 64;

// Of the lines "ID:CONTROLLERS:PATH", the most telling path: version 2's, else
// systemd's, else any but the root.
std::string_view GroupIn(std::string_view cgroups) {
  std::string_view best;
  int best_rank = 0;
  for (const std::string_view line : absl::StrSplit(cgroups, '\n')) {
    const std::vector<std::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const int rank = parts[2] == "/"              ? 1
                     : parts[1].empty()           ? 4
                     : parts[1] == "name=systemd" ? 3
                                                  : 2;
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = parts[2];
  }
  return best;
}

// Docker, containerd, CRI-O and Podman put it into a name with words around it.
std::string_view ContainerIdIn(std::string_view name) {
  std::size_t digits = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool is_digit =
        i < name.size() &&
        absl::ascii_isxdigit(static_cast<unsigned char>(name[i]));
    if (is_digit) {
      ++digits;
      continue;
    }
    if (digits == kContainerIdDigits) return name.substr(i - digits, digits);
    digits = 0;
  }
  return absl::ConsumePrefix(&name, "lxc.payload.") ? name : "";
}

bool IsUnit(std::string_view name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".service", ".scope", ".socket",
                                              ".mount", ".swap"},
      [name](std::string_view ending) {
        return name.size() > ending.size() && absl::EndsWith(name, ending);
      });
}

}  // namespace

ProcessOrigin OriginIn(std::string_view cgroups) {
  ProcessOrigin origin;
  origin.cgroup = GroupIn(cgroups);
  for (const std::string_view name : absl::StrSplit(origin.cgroup, '/')) {
    // The innermost is the last.
    if (const auto id = ContainerIdIn(name); !id.empty()) {
      origin.container_id = id;
    }
    if (IsUnit(name)) origin.unit = name;
  }
  return origin;
}

ProcessOrigin OriginOf(std::uint64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/cgroup"));
  return OriginIn(std::string(std::istreambuf_iterator<char>(file), {}));
}

namespace {

constexpr int kMostTries = 3;

// When the process was started, and the program that it runs.
std::string IdentityOf(std::uint64_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  std::ifstream file(folder + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  // The name before it may have spaces and parentheses; the time is the 20th
  // word behind it.
  const std::vector<std::string> words =
      absl::StrSplit(text.substr(text.rfind(')') + 1), ' ');
  std::error_code error;
  return absl::StrCat(
      words.size() > 20 ? words[20] : "", " ",
      std::filesystem::read_symlink(folder + "/exe", error).string());
}

double PerSecond(std::uint64_t before, std::uint64_t now, double seconds) {
  return static_cast<double>(static_cast<std::int64_t>(now - before)) / seconds;
}

void AddRates(const ProcessStatistics& before, double seconds, TopRow& row) {
  if (before.resident_bytes && row.now.resident_bytes) {
    row.growth_bytes_per_second =
        PerSecond(*before.resident_bytes, *row.now.resident_bytes, seconds);
  }
  for (unsigned i = 0; i < kRouteCount; ++i) {
    row.calls_per_second[i] =
        PerSecond((before.statistics.*kRouteFields[i]).allocations,
                  (row.now.statistics.*kRouteFields[i]).allocations, seconds);
  }
}

}  // namespace

// The process's calls that map memory wait meanwhile: for a hundredth of the
// time at most.
void TopProcesses::CountParts(Known& known, TopRow& row) {
  const Clock::time_point begin = Clock::now();
  if (begin >= known.parts_due) {
    known.parts.reset();
    const absl::StatusOr<ResidentParts> parts =
        CountResident(*known.image, row.now);
    if (parts.ok()) known.parts = *parts;
    const Clock::time_point end = Clock::now();
    known.parts_due = end + 100 * (end - begin);
  }
  row.parts = known.parts;
}

TopProcesses::TopProcesses(std::vector<std::uint64_t> pids)
    : pids_(std::move(pids)) {
  AllowManyFiles();
}

absl::Status TopProcesses::LookAt(std::uint64_t pid,
                                  std::vector<TopRow>& rows) {
  Known& known = known_[pid];
  const std::string identity = IdentityOf(pid);
  // One that has just been started may not have loaded hakmem yet.
  const bool is_new = known.identity != identity;
  if (is_new || (known.image == nullptr && known.tries < kMostTries)) {
    const int tries = is_new ? 1 : known.tries + 1;
    known = Known();
    known.identity = identity;
    known.tries = tries;
    absl::StatusOr<ProcessImage> image = ProcessImage::Open(absl::StrCat(pid));
    known.forbidden = absl::IsPermissionDenied(image.status());
    if (!image.ok()) return image.status();
    known.image = std::make_unique<ProcessImage>(*std::move(image));
  }
  if (known.forbidden) {
    return absl::PermissionDeniedError(absl::StrCat(
        "process ", pid, " may not be read: run this as its user or as root"));
  }
  if (known.image == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no hakmem in process ", pid));
  }
  absl::StatusOr<ProcessStatistics> now = ReadStatistics(*known.image);
  if (!now.ok()) {
    const bool was_there = known.last_time.has_value();
    known.image.reset();
    if (!was_there) return now.status();
    // It has ended, or has executed its own program anew.
    known = Known();
    return LookAt(pid, rows);
  }
  TopRow row;
  row.now = *std::move(now);
  if (!pids_.empty()) CountParts(known, row);
  const absl::StatusOr<HeapKinds> heap = ReadHeapTotals(*known.image);
  row.is_sampled = heap.ok();
  if (heap.ok() && heap->allocated.samples != 0) {
    row.live_bytes = heap->live.bytes;
  }
  const Clock::time_point time = Clock::now();
  if (known.last_time) {
    AddRates(known.last,
             std::chrono::duration<double>(time - *known.last_time).count(),
             row);
  } else {
    known.image->ForgetFiles();
    known.start = {.origin = OriginOf(pid),
                   .resident_bytes = row.resident_bytes(),
                   .time = std::chrono::system_clock::now()};
  }
  row.start = known.start;
  known.last = row.now;
  known.last_time = time;
  rows.push_back(std::move(row));
  return absl::OkStatus();
}

absl::Status TopProcesses::Look(std::vector<TopRow>& rows) {
  rows.clear();
  forbidden_ = 0;
  if (!pids_.empty()) {
    for (const std::uint64_t pid : pids_) {
      if (absl::Status status = LookAt(pid, rows); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  const std::vector<std::uint64_t> pids = NumbersIn("/proc");
  for (const std::uint64_t pid : pids) {
    if (absl::IsPermissionDenied(LookAt(pid, rows))) ++forbidden_;
  }
  const std::set<std::uint64_t> there(pids.begin(), pids.end());
  std::erase_if(known_, [&there](const auto& entry) {
    return !there.contains(entry.first);
  });
  return absl::OkStatus();
}

}  // namespace hakmem::tools
