#include "tools/hakmem/environment.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/config/options.h"
#include "allocator/options/option_parser.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kPrefix = "HAKMEM_";
constexpr char kPreloadName[] = "LD_PRELOAD";

std::string KnownOptions() {
  std::string names;
  for (const OptionSpec& spec : kOptionTable) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", spec.name);
  }
  return names;
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
