#include "tools/hakmem/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hakmem::tools {
namespace {

constexpr off_t kMostBytes = off_t{256} << 20;
constexpr std::uint64_t kMostFunctionBytes = std::uint64_t{1} << 32;
constexpr std::string_view kStart = "perf-";
constexpr std::string_view kEnd = ".map";

// The number that the process has in its own namespace.
std::string OwnNumber(std::uint64_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, "NSpid:")) {
      return line.substr(line.find_last_of("\t ") + 1);
    }
  }
  return absl::StrCat(pid);
}

std::string ContentOf(int file, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(file, text.data() + done, bytes - done);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

bool IsPlace(std::string_view text) {
  return absl::StartsWith(text, "/") || absl::StartsWith(text, "file:") ||
         absl::StartsWith(text, "node:");
}

}  // namespace

SourceLine JitName(std::string_view name) {
  if (absl::ConsumePrefix(&name, "py::")) {
    const std::size_t colon = name.rfind(':');
    if (colon == std::string_view::npos) return {std::string(name), ""};
    return {std::string(name.substr(0, colon)),
            std::string(name.substr(colon + 1))};
  }
  if (!absl::ConsumePrefix(&name, "JS:")) return {std::string(name), ""};
  // How well it is compiled: it is one function all the same.
  while (!name.empty() && absl::StrContains("~^+*'", name.substr(0, 1))) {
    name.remove_prefix(1);
  }
  // A function's name may have spaces, as "get size" has.
  std::size_t space = name.find(' ');
  while (space != std::string_view::npos && !IsPlace(name.substr(space + 1))) {
    space = name.find(' ', space + 1);
  }
  if (space == std::string_view::npos) return {std::string(name), ""};
  const std::string_view function = name.substr(0, space);
  return {function.empty() ? "(anonymous)" : std::string(function),
          std::string(name.substr(space + 1))};
}

bool PerfMap::IsItsName(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  std::uint64_t pid = 0;
  return absl::ConsumePrefix(&path, kStart) &&
         absl::ConsumeSuffix(&path, kEnd) && absl::SimpleAtoi(path, &pid);
}

PerfMap PerfMap::OfProcess(std::uint64_t pid) {
  PerfMap map;
  struct stat process;
  if (::stat(absl::StrCat("/proc/", pid).c_str(), &process) != 0) return map;
  map.path_ = absl::StrCat("/tmp/", kStart, OwnNumber(pid), kEnd);
  map.Open(absl::StrCat("/proc/", pid, "/root", map.path_), process.st_uid);
  if (map.functions_.empty()) map.path_.clear();
  return map;
}

PerfMap PerfMap::OfFile(const std::string& path) {
  PerfMap map;
  map.path_ = path;
  map.Open(path, ::geteuid());
  return map;
}

void PerfMap::Open(const std::string& source, std::uint32_t user) {
  source_ = source;
  const int file =
      ::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  struct stat facts;
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
      facts.st_size <= kMostBytes &&
      (facts.st_uid == user || facts.st_uid == 0 ||
       facts.st_uid == ::geteuid())) {
    Read(ContentOf(file, static_cast<std::size_t>(facts.st_size)));
  }
  ::close(file);
}

void PerfMap::Read(std::string_view text) {
  for (const std::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<std::string_view, std::string_view> first =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const std::pair<std::string_view, std::string_view> second =
        absl::StrSplit(first.second, absl::MaxSplits(' ', 1));
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    if (!absl::SimpleHexAtoi(first.first, &begin) ||
        !absl::SimpleHexAtoi(second.first, &bytes) || second.second.empty() ||
        bytes == 0 || bytes > kMostFunctionBytes || begin + bytes < begin) {
      continue;
    }
    functions_[begin] = {begin, begin + bytes, JitName(second.second)};
  }
}

const PerfMap::Function* PerfMap::At(std::uint64_t address) const {
  auto after = functions_.upper_bound(address);
  if (after == functions_.begin()) return nullptr;
  const Function& function = (--after)->second;
  return address < function.end ? &function : nullptr;
}

}  // namespace hakmem::tools
