#include "tools/hakmem/heap_input.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/input_file.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/pprof_reader.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

struct Snapshot {
  std::uint64_t pid = 0;
  std::uint64_t unix_ms = 0;
  std::string path;
};

std::optional<Snapshot> SnapshotNamed(const std::filesystem::path& path) {
  Snapshot snapshot = {.path = path.string()};
  const std::vector<std::string> parts =
      absl::StrSplit(path.filename().string(), '.');
  if (parts.size() != 3 || parts[2] != "heap" ||
      !absl::SimpleAtoi(parts[0], &snapshot.pid) ||
      !absl::SimpleAtoi(parts[1], &snapshot.unix_ms)) {
    return std::nullopt;
  }
  return snapshot;
}

// By process, the oldest first.
std::map<std::uint64_t, std::vector<Snapshot>> SnapshotsIn(
    const std::string& folder) {
  std::map<std::uint64_t, std::vector<Snapshot>> by_pid;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    if (std::optional<Snapshot> snapshot = SnapshotNamed(at->path())) {
      by_pid[snapshot->pid].push_back(*std::move(snapshot));
    }
  }
  for (auto& [pid, snapshots] : by_pid) {
    std::ranges::sort(snapshots, {}, &Snapshot::unix_ms);
  }
  return by_pid;
}

std::vector<std::string> PathsOf(const std::vector<Snapshot>& snapshots) {
  std::vector<std::string> paths;
  for (const Snapshot& snapshot : snapshots) paths.push_back(snapshot.path);
  return paths;
}

}  // namespace

absl::StatusOr<HeapProfiles> ReadHeap(const std::string& name,
                                      HeapModules& modules) {
  if (IsProcessOrCore(name)) return ReadHeapOfProcess(name, modules);
  std::error_code error;
  if (name != "-" && !std::filesystem::exists(name, error) && !error) {
    return absl::NotFoundError(
        "there is no such file, and no such process on hakmem that may be "
        "read");
  }
  std::string text;
  InputFile file(name);
  const absl::Status status =
      file.ReadAll([&text](std::string_view bytes) { text += bytes; });
  if (!status.ok()) return status;
  return IsPprof(text) ? ReadPprof(text, modules)
                       : ReadHeapProfiles(text, modules);
}

void ComplainOfHeap(const std::string& name, std::string_view why) {
  // What is said of a process is a sentence that names it.
  Complain(IsProcessOrCore(name) ? ForTerminal(why)
                                 : absl::StrCat(ForTerminal(name), ": ", why));
}

bool ReadHeaps(const std::vector<std::string>& names, HeapModules& modules,
               HeapProfiles& profiles) {
  bool all = true;
  for (const std::string& name : names) {
    absl::StatusOr<HeapProfiles> read = ReadHeap(name, modules);
    if (read.ok()) {
      profiles.Append(*std::move(read));
    } else {
      ComplainOfHeap(name, read.status().message());
      all = false;
    }
  }
  return all;
}

std::string SnapshotPath(const std::string& folder, std::uint64_t pid,
                         std::uint64_t unix_ms) {
  return absl::StrCat(folder, "/", pid, ".", unix_ms, ".heap");
}

std::vector<std::string> SnapshotsOf(const std::string& folder,
                                     std::uint64_t pid) {
  return PathsOf(SnapshotsIn(folder)[pid]);
}

std::string FirstOfNewestRun(const std::vector<std::string>& paths) {
  HeapModules modules;
  const auto read = [&modules](const std::string& path) {
    return ReadHeap(path, modules).value_or(HeapProfiles());
  };
  if (paths.empty()) return "";
  const HeapProfiles newest = read(paths.back());
  const auto is_of_its_run = [&](const std::string& path) {
    return std::ranges::equal(read(path).last, newest.last, AreOfOneRun);
  };
  return *std::find_if(paths.begin(), paths.end() - 1, is_of_its_run);
}

absl::StatusOr<SnapshotPairs> PickSnapshots(const std::string& folder,
                                            absl::Duration since) {
  SnapshotPairs pairs;
  for (const auto& [pid, snapshots] : SnapshotsIn(folder)) {
    const std::string first = FirstOfNewestRun(PathsOf(snapshots));
    std::size_t before = 0;
    while (snapshots[before].path != first) ++before;
    if (before + 1 == snapshots.size()) continue;
    const absl::Time newest = absl::FromUnixMillis(
        static_cast<std::int64_t>(snapshots.back().unix_ms));
    for (std::size_t i = before + 1;
         since > absl::ZeroDuration() && i < snapshots.size(); ++i) {
      const absl::Time time =
          absl::FromUnixMillis(static_cast<std::int64_t>(snapshots[i].unix_ms));
      if (newest - time >= since) before = i;
    }
    pairs.before.push_back(snapshots[before].path);
    pairs.after.push_back(snapshots.back().path);
  }
  if (pairs.before.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there are no two profiles of one process in ",
                     ForTerminal(folder), " (hakmem help watch)"));
  }
  return pairs;
}

}  // namespace hakmem::tools
