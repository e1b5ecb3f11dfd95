#include "tools/hakmem/environment.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/config/options.h"
#include "allocator/options/option_parser.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kVariants[] = {"release", "tracing", "hardened",
                                          "debug"};

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  const char* chosen = std::getenv("HAKMEM_LIBRARY_DIR");
  if (chosen != nullptr && chosen[0] != '\0') folders.emplace_back(chosen);
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return folders;
  const std::string folder = program.parent_path().string();
  folders.push_back(folder);
  std::vector<std::string> libraries = {"lib", "lib64"};
  struct utsname machine;
  if (::uname(&machine) == 0) {
    // Debian's folders of one architecture.
    libraries.push_back(absl::StrCat("lib/", machine.machine, "-linux-gnu"));
  }
  for (const std::string& library : libraries) {
    folders.push_back(absl::StrCat(folder, "/../", library));
    folders.push_back(absl::StrCat(folder, "/../", library, "/hakmem"));
  }
  folders.push_back(
      absl::StrCat(program.string(), ".runfiles/hakmem/allocator"));
  folders.push_back(absl::StrCat(folder, "/../../allocator"));
  return folders;
}

}  // namespace

absl::StatusOr<std::string> LibraryName(std::string_view variant) {
  if (std::ranges::find(kVariants, variant) == std::end(kVariants)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--variant=", variant, ": there are ", absl::StrJoin(kVariants, ", ")));
  }
  if (variant == kVariants[0]) return "libhakmem.so";
  return absl::StrCat("libhakmem-", variant, ".so");
}

absl::StatusOr<std::string> FindLibrary(std::string_view variant) {
  const absl::StatusOr<std::string> name = LibraryName(variant);
  if (!name.ok()) return name.status();
  const std::vector<std::string> folders = Folders();
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::filesystem::path path =
        std::filesystem::canonical(absl::StrCat(folder, "/", *name), error);
    if (!error) return path.string();
  }
  return absl::NotFoundError(absl::StrCat(
      "cannot find ", *name, " (looked in ", absl::StrJoin(folders, ", "),
      "); name it with --library=FILE, or its folder with HAKMEM_LIBRARY_DIR"));
}

std::string NameForGlibc(const std::string& library,
                         const std::string& folder) {
  constexpr std::string_view kToTheRoot = "/../../../..";
  std::error_code error;
  const bool leads = std::filesystem::equivalent(
      absl::StrCat(folder, kToTheRoot, library), library, error);
  return leads ? absl::StrCat("/$LIB", kToTheRoot, library) : library;
}

namespace {

constexpr std::string_view kPrefix = "HAKMEM_";
constexpr char kPreloadName[] = "LD_PRELOAD";

std::string KnownOptions() {
  return absl::StrJoin(
      kOptionTable, ", ",
      [](std::string* names, const OptionSpec& spec) { *names += spec.name; });
}

}  // namespace

Environment::Environment(const char* const* entries) {
  for (; *entries != nullptr; ++entries) {
    const std::string_view entry = *entries;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    // The first of two is the one that getenv finds.
    values_.try_emplace(std::string(entry.substr(0, equals)),
                        entry.substr(equals + 1));
  }
}

std::string Environment::Get(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

void Environment::Set(const std::string& name, std::string value) {
  values_[name] = std::move(value);
}

void Environment::Preload(const std::string& library) {
  const std::string others = Get(kPreloadName);
  Set(kPreloadName,
      others.empty() ? library : absl::StrCat(library, ":", others));
}

absl::Status Environment::SetOption(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--option ", ForTerminal(assignment), ": it must be NAME=VALUE"));
  }
  std::string name(assignment.substr(0, equals));
  const std::string value(assignment.substr(equals + 1));
  if (!absl::StartsWith(name, kPrefix)) name = absl::StrCat(kPrefix, name);
  ParsedOptions checked;
  switch (ApplyOption(name, value, checked)) {
    case OptionError::kNone:
      Set(name, value);
      return absl::OkStatus();
    case OptionError::kUnknown:
      return absl::InvalidArgumentError(
          absl::StrCat(ForTerminal(name), " is not an option of hakmem (",
                       KnownOptions(), ")"));
    case OptionError::kMalformed:
    case OptionError::kOutOfRange:
    case OptionError::kTooLong:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ForTerminal(name), " cannot be ", ForTerminal(value),
                   " (docs/options.md has what it can be)"));
}

std::vector<std::string> Environment::Entries() const {
  std::vector<std::string> entries;
  for (const auto& [name, value] : values_) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

}  // namespace hakmem::tools
