#include "tools/hakmem/process_names.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_statistics.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

bool IsName(const std::string& argument) {
  std::uint64_t number = 0;
  return !argument.empty() && argument != "-" &&
         argument.find('/') == std::string::npos &&
         !absl::SimpleAtoi(argument, &number);
}

bool HasName(std::uint64_t pid, const std::string& name) {
  const std::string program = ProgramOf(pid);
  if (name == program || name == FileNameOf(pid)) return true;
  // One of the two may be cut.
  return std::min(name.size(), program.size()) == kMostLetters &&
         (name.starts_with(program) || program.starts_with(name));
}

bool RunsOnHakmem(std::uint64_t pid) {
  const absl::StatusOr<ProcessImage> image =
      ProcessImage::Open(absl::StrCat(pid));
  return image.ok() && ReadStatistics(*image).ok();
}

// Itself, where nobody has it.
std::vector<std::string> Numbers(const std::string& argument) {
  std::vector<std::string> numbers;
  if (IsName(argument)) {
    for (const std::uint64_t pid : NumbersIn("/proc")) {
      if (HasName(pid, argument) && RunsOnHakmem(pid)) {
        numbers.push_back(absl::StrCat(pid));
      }
    }
  }
  if (numbers.empty()) numbers.push_back(argument);
  return numbers;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ProcessesNamed(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  for (const std::string& argument : arguments) {
    std::ranges::copy(Numbers(argument), std::back_inserter(all));
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> EachOneProcess(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  for (const std::string& argument : arguments) {
    const std::vector<std::string> numbers = Numbers(argument);
    if (numbers.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there are several processes named ", ForTerminal(argument), ": ",
          absl::StrJoin(numbers, ", "), "; name one by its number"));
    }
    all.push_back(numbers.front());
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> OneProcessNamed(
    const std::vector<std::string>& arguments) {
  if (arguments.empty()) return arguments;
  absl::StatusOr<std::vector<std::string>> all =
      EachOneProcess({arguments.front()});
  if (all.ok()) {
    all->insert(all->end(), arguments.begin() + 1, arguments.end());
  }
  return all;
}

std::string NobodyNamed(std::string_view name) {
  return absl::StrCat(
      ForTerminal(name),
      " is neither a process's number nor the name of one on hakmem that may "
      "be read");
}

}  // namespace hakmem::tools
