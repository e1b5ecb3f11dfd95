#include "tools/provoke/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/provoke/process_facts.h"

namespace hakmem::provoke {
namespace {

struct Place {
  std::string folder;  // of this process's cgroup that has the controller
  bool second_version = false;
};

// Where /proc/self/cgroup says that this process is, by /proc/self/mountinfo.
Place OwnPlace() {
  std::string first;
  std::string second;
  std::ifstream own("/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    if (parts[0] == "0") second = parts[2];
    for (const absl::string_view name : absl::StrSplit(parts[1], ',')) {
      if (name == "memory") first = parts[2];
    }
  }
  Place place;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> halves = absl::StrSplit(line, " - ");
    if (halves.size() != 2) continue;
    const std::vector<std::string> front = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> back = absl::StrSplit(halves[1], ' ');
    if (front.size() < 5 || back.size() < 3) continue;
    // A container sees its own cgroup as the root of the mount.
    const auto below = [&](const std::string& path) {
      return path == "/" || path == front[3] ? front[4] : front[4] + path;
    };
    if (!first.empty() && back[0] == "cgroup" &&
        absl::StrCat(",", back[2], ",").find(",memory,") != std::string::npos) {
      return {below(first), false};
    }
    if (first.empty() && !second.empty() && back[0] == "cgroup2") {
      place = {below(second), true};
    }
  }
  return place;
}

}  // namespace

Cgroup::Cgroup(std::size_t limit_bytes) {
  const Place own = OwnPlace();
  if (own.folder.empty()) {
    problem_ = "there is no memory cgroup here";
    return;
  }
  second_version_ = own.second_version;
  const char* const limit_file =
      second_version_ ? "memory.max" : "memory.limit_in_bytes";
  if (TryMake(own.folder, limit_file, limit_bytes)) return;
  // In version 2 a cgroup that holds processes cannot limit its children.
  const std::string beside = own.folder.substr(0, own.folder.rfind('/'));
  if (second_version_ && TryMake(beside, limit_file, limit_bytes)) return;
  problem_ = absl::StrCat("no cgroup can be made in ", own.folder, ": ",
                          std::strerror(errno));
}

bool Cgroup::TryMake(const std::string& parent, const char* limit_file,
                     std::size_t limit_bytes) {
  folder_ = absl::StrCat(parent, "/hakmem_provoke_", getpid());
  if (mkdir(folder_.c_str(), 0755) != 0) {
    folder_.clear();
    return false;
  }
  const int error = WriteFile(absl::StrCat(folder_, "/", limit_file).c_str(),
                              absl::StrCat(limit_bytes).c_str());
  if (error == 0) {
    // What is swapped out would not count; where there is no such file there is
    // no swap to be counted.
    if (second_version_) {
      WriteFile(absl::StrCat(folder_, "/memory.swap.max").c_str(), "0");
    } else {
      WriteFile(absl::StrCat(folder_, "/memory.memsw.limit_in_bytes").c_str(),
                absl::StrCat(limit_bytes).c_str());
    }
    return true;
  }
  Remove();
  errno = error;
  return false;
}

int Cgroup::Join() const {
  return WriteFile(absl::StrCat(folder_, "/cgroup.procs").c_str(),
                   absl::StrCat(getpid()).c_str());
}

long long Cgroup::UseBytes() const {
  const char* const file =
      second_version_ ? "/memory.current" : "/memory.usage_in_bytes";
  return NumberIn((folder_ + file).c_str(), "");
}

void Cgroup::Remove() {
  if (folder_.empty()) return;
  // A process that has just died is a member for a moment longer.
  for (int i = 0; i < 100 && rmdir(folder_.c_str()) != 0 && errno == EBUSY;
       ++i) {
    usleep(10'000);
  }
  folder_.clear();
}

}  // namespace hakmem::provoke
