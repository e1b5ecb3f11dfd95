#include "tools/hakmem/run_output.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kProcess = "%p";

// Whether `name` is `pattern` with a number in the place of each %p.
bool Matches(std::string_view name, std::string_view pattern) {
  const std::size_t at = pattern.find(kProcess);
  if (at == std::string_view::npos) return name == pattern;
  if (!absl::StartsWith(name, pattern.substr(0, at))) return false;
  name.remove_prefix(at);
  std::size_t digits = 0;
  while (digits < name.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(name[digits]))) {
    ++digits;
  }
  return digits > 0 &&
         Matches(name.substr(digits), pattern.substr(at + kProcess.size()));
}

}  // namespace

RunOutput::RunOutput(std::string path) : path_(std::move(path)) {
  before_ = Files();
}

std::map<std::string, std::uint64_t> RunOutput::Files() const {
  std::map<std::string, std::uint64_t> files;
  if (path_.empty()) return files;
  const std::filesystem::path path(path_);
  const std::string pattern = path.filename().string();
  std::error_code error;
  if (!absl::StrContains(pattern, kProcess)) {
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (!error) files[path_] = size;
    return files;
  }
  for (std::filesystem::directory_iterator at(path.parent_path(), error), end;
       !error && at != end; at.increment(error)) {
    if (!Matches(at->path().filename().string(), pattern)) continue;
    std::error_code unknown;
    const std::uint64_t size = at->file_size(unknown);
    if (!unknown) files[at->path().string()] = size;
  }
  return files;
}

std::map<std::string, std::string> RunOutput::NewContent() const {
  std::map<std::string, std::string> contents;
  for (const auto& [path, size] : Files()) {
    const auto old = before_.find(path);
    const std::uint64_t from = old == before_.end() ? 0 : old->second;
    if (size <= from) continue;
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(from));
    contents[path].assign(std::istreambuf_iterator<char>(file), {});
  }
  return contents;
}

bool IsPath(const std::string& value) {
  return !value.empty() && value != "0" && value != "1" &&
         !absl::StartsWith(value, "fd:");
}

}  // namespace hakmem::tools
