#include "tools/hakmem/cgroup_kills.h"

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {
namespace {

// Version 1 writes "no limit" as the largest number of whole pages.
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

struct Files {
  const char* limit;
  const char* peak;
  const char* hits;
  const char* hits_name;  // "": the file holds the number alone
  const char* swap_hits;  // of the limit on memory and swap together
  const char* kills;
};

constexpr Files kVersion1 = {"/memory.limit_in_bytes",
                             "/memory.max_usage_in_bytes", "/memory.failcnt",
                             "",
                             // Docker sets it to the same value; then it is the
                             // one that is hit.
                             "/memory.memsw.failcnt", "/memory.oom_control"};
constexpr Files kVersion2 = {
    "/memory.max",   "/memory.peak", "/memory.events", "max", "",
    "/memory.events"};

// The number of the line "NAME NUMBER", or of the file's only line.
std::optional<std::uint64_t> NumberIn(const std::string& path,
                                      std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const bool found = name.empty() || (words.size() == 2 && words[0] == name);
    std::uint64_t number = 0;
    if (found && absl::SimpleAtoi(words.back(), &number)) return number;
  }
  return std::nullopt;
}

struct Place {
  std::string mount;  // where the hierarchy is to be seen
  std::string below;  // this process's group in it
  bool second_version = false;
};

// The group's path of a line of /proc/self/cgroup; "" when it is another's.
std::string GroupIn(std::string_view line, bool second_version) {
  const std::vector<std::string> parts =
      absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (parts.size() != 3) return "";
  if (second_version) return parts[0] == "0" ? parts[2] : "";
  const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
  const bool memory = std::find(controllers.begin(), controllers.end(),
                                "memory") != controllers.end();
  return memory ? parts[2] : "";
}

// Fills in where the hierarchy is mounted, by a line of mountinfo.
bool IsMountOf(std::string_view line, Place& place) {
  const std::vector<std::string> halves = absl::StrSplit(line, " - ");
  if (halves.size() != 2) return false;
  const std::vector<std::string> front = absl::StrSplit(halves[0], ' ');
  const std::vector<std::string> back = absl::StrSplit(halves[1], ' ');
  if (front.size() < 5 || back.size() < 3) return false;
  const bool match =
      place.second_version
          ? back[0] == "cgroup2"
          : back[0] == "cgroup" &&
                absl::StrContains(absl::StrCat(",", back[2], ","), ",memory,");
  if (!match) return false;
  // A container sees its own group, or one around it, as the mount's root.
  const std::string& root = front[3];
  if (root != "/") {
    if (!absl::StartsWith(place.below + "/", root + "/")) return false;
    place.below.erase(0, root.size());
  }
  if (place.below == "/") place.below.clear();
  place.mount = front[4];
  return true;
}

std::optional<Place> FindPlace(const std::string& root, bool second_version) {
  Place place;
  place.second_version = second_version;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line) && place.below.empty();) {
    place.below = GroupIn(line, second_version);
  }
  if (place.below.empty()) return std::nullopt;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (IsMountOf(line, place)) return place;
  }
  return std::nullopt;
}

void Read(const std::string& root, Place place,
          std::vector<CgroupMemory>& groups) {
  const Files& files = place.second_version ? kVersion2 : kVersion1;
  while (true) {
    const std::string folder = absl::StrCat(place.mount, place.below);
    const std::string here = root + folder;
    const std::optional<std::uint64_t> kills =
        NumberIn(here + files.kills, "oom_kill");
    if (kills.has_value()) {
      CgroupMemory group;
      group.limit_file = folder + files.limit;
      group.limit = NumberIn(here + files.limit, "");
      if (group.limit.value_or(kUnlimited) >= kUnlimited) group.limit.reset();
      group.peak = NumberIn(here + files.peak, "").value_or(0);
      group.hits = NumberIn(here + files.hits, files.hits_name).value_or(0) +
                   NumberIn(here + files.swap_hits, "").value_or(0);
      group.kills = *kills;
      groups.push_back(std::move(group));
    }
    const std::size_t slash = place.below.rfind('/');
    if (slash == std::string::npos) return;
    place.below.erase(slash);
  }
}

// Some kernels do not count the hits of version 1; then the peak tells.
bool WasHit(const CgroupMemory& before, const CgroupMemory& after) {
  // The kernel charges this much at a time.
  constexpr std::uint64_t kBatch = 1 << 20;
  return after.limit.has_value() &&
         (after.hits > before.hits || after.peak + kBatch >= *after.limit);
}

}  // namespace

std::vector<CgroupMemory> ReadCgroups(const std::string& root) {
  std::vector<CgroupMemory> groups;
  for (const bool second_version : {true, false}) {
    const std::optional<Place> place = FindPlace(root, second_version);
    if (place.has_value()) Read(root, *place, groups);
  }
  return groups;
}

std::optional<CgroupMemory> FindKiller(const std::vector<CgroupMemory>& before,
                                       const std::vector<CgroupMemory>& after) {
  if (before.size() != after.size()) return std::nullopt;
  bool killed = false;
  std::optional<CgroupMemory> killer;
  for (std::size_t i = 0; i < after.size(); ++i) {
    killed = killed || after[i].kills > before[i].kills;
    if (!killer.has_value() && WasHit(before[i], after[i])) killer = after[i];
  }
  return killed ? killer : std::nullopt;
}

std::string KilledLine(const CgroupMemory& killer, std::uint64_t pid,
                       const std::string& program) {
  using Json = nlohmann::ordered_json;
  const std::string now = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(),
                                           absl::UTCTimeZone());
  const std::uint64_t limit = killer.limit.value_or(0);
  const Json json = {
      {"schema", kFailureSchema},
      {"version", kFailureSchemaVersion},
      {"event", "killed"},
      {"time", now},
      {"pid", pid},
      {"program", program},
      {"signal", SIGKILL},
      {"limit",
       {{"name", "memory.max"},
        {"value", limit},
        // It was full, whether the kernel counts its peak or not.
        {"use", std::max(killer.peak, limit)},
        {"source", killer.limit_file}}},
  };
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace hakmem::tools
