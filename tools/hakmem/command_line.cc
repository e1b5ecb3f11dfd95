#include "tools/hakmem/command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "allocator/base/revision.h"
#include "allocator/config/version.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kHelpIndent = 6;
constexpr std::size_t kHelpColumns = 79;

void PrintError(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// A flag's name as help has it: abseil's have underscores, which may be typed.
std::string Typed(std::string_view name) {
  return absl::StrReplaceAll(name, {{"_", "-"}});
}

absl::CommandLineFlag* FindFlag(const Command& command, std::string_view name) {
  for (const std::string_view known : command.flags) {
    if (Typed(known) == Typed(name)) return absl::FindCommandLineFlag(known);
  }
  return nullptr;
}

// One flag as it stands on the command line.
struct GivenFlag {
  std::string_view name;
  std::optional<std::string_view> value;
};

GivenFlag SplitFlag(std::string_view argument) {
  argument.remove_prefix(absl::StartsWith(argument, "--") ? 2 : 1);
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

// Sets the flag in arguments[at]; returns how many arguments that took.
absl::StatusOr<std::size_t> SetFlag(const Command& command,
                                    std::span<const char* const> arguments,
                                    std::size_t at) {
  GivenFlag given = SplitFlag(arguments[at]);
  absl::CommandLineFlag* flag = FindFlag(command, given.name);
  std::size_t taken = 1;
  if (flag == nullptr && !given.value.has_value() &&
      absl::StartsWith(given.name, "no")) {
    flag = FindFlag(command, given.name.substr(2));
    if (flag != nullptr && !flag->IsOfType<bool>()) flag = nullptr;
    given.value = "false";
  }
  if (flag == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no flag ", ForTerminal(arguments[at])));
  }
  if (!given.value.has_value()) {
    if (flag->IsOfType<bool>()) {
      given.value = "true";
    } else if (at + 1 < arguments.size()) {
      given.value = arguments[at + 1];
      taken = 2;
    }
  }
  // Empty: a shell's variable that is not set.
  if (given.value.value_or("").empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", Typed(flag->Name()), " needs a value"));
  }
  std::string error;
  if (!flag->ParseFrom(*given.value, &error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", Typed(flag->Name()), "=", ForTerminal(*given.value), ": ",
        flag->IsOfType<absl::Duration>() ? "a time is written as 60s, 10m or 2h"
                                         : "not a value it can have"));
  }
  return taken;
}

int WrongUsage(const Command& command, const absl::Status& status) {
  PrintError(absl::StrCat("hakmem ", command.name, ": ", status.message(),
                          "\nusage: hakmem ", command.name, " ", command.usage,
                          "\nmore: hakmem help ", command.name, "\n"));
  return command.usage_status;
}

const Command* FindCommand(std::span<const Command* const> commands,
                           std::string_view name) {
  for (const Command* command : commands) {
    if (command->name == name) return command;
  }
  return nullptr;
}

int UnknownCommand(std::span<const Command* const> commands,
                   std::string_view name) {
  std::string names;
  for (const Command* command : commands) {
    absl::StrAppend(&names, command->name, ", ");
  }
  PrintError(absl::StrCat("hakmem: there is no subcommand \"",
                          ForTerminal(name), "\" (there are: ", names,
                          "help)\n"));
  return 2;
}

bool AsksForHelp(std::string_view argument) {
  return argument == "--help" || argument == "-h" || argument == "-help";
}

int UnwantedArgument(const char* argument, std::string_view after) {
  PrintError(absl::StrCat("hakmem: ", ForTerminal(argument),
                          " means nothing after ", after, "\n"));
  return 2;
}

int ShowHelp(std::span<const Command* const> commands,
             std::span<const char* const> names) {
  if (names.size() > 1) return UnwantedArgument(names[1], "help NAME");
  if (names.empty()) {
    PrintOut(Overview(commands));
    return 0;
  }
  const Command* command = FindCommand(commands, names[0]);
  if (command == nullptr) return UnknownCommand(commands, names[0]);
  PrintOut(Help(*command));
  return 0;
}

}  // namespace

int NotDone(std::string_view why) {
  Complain(why);
  return kNotDone;
}

int WrongUsage(std::string_view why) {
  Complain(why);
  return kWrongUsage;
}

absl::StatusOr<std::vector<std::string>> ReadFlags(
    const Command& command, std::span<const char* const> arguments) {
  std::vector<std::string> others;
  std::size_t at = 0;
  while (at < arguments.size()) {
    const std::string_view argument = arguments[at];
    if (argument == "--") {
      ++at;
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      if (command.flags_end == FlagsEnd::kAtFirstArgument) break;
      others.emplace_back(argument);
      ++at;
      continue;
    }
    const absl::StatusOr<std::size_t> taken = SetFlag(command, arguments, at);
    if (!taken.ok()) return taken.status();
    at += *taken;
  }
  for (; at < arguments.size(); ++at) others.emplace_back(arguments[at]);
  // What "$(pidof PROGRAM)" is where none runs. A program's are its own affair.
  const bool of_program = command.flags_end == FlagsEnd::kAtFirstArgument;
  const auto end =
      of_program && !others.empty() ? others.begin() + 1 : others.end();
  if (std::find(others.begin(), end, "") != end) {
    return absl::InvalidArgumentError("an argument is empty");
  }
  return others;
}

std::string Overview(std::span<const Command* const> commands) {
  std::string text =
      "hakmem: a malloc for Linux whose failed allocations explain "
      "themselves.\n\n"
      "usage: hakmem SUBCOMMAND [--FLAG…] [ARGUMENT…]\n\n";
  for (const Command* command : commands) {
    absl::StrAppend(&text, "  ", Padded(command->name, 9), command->summary,
                    "\n");
  }
  absl::StrAppend(&text, "  ", Padded("help", 9),
                  "help NAME: a subcommand's flags and exit status\n",
                  "  --version\n");
  return text;
}

std::string Help(const Command& command) {
  std::string text =
      absl::StrCat("usage: hakmem ", command.name, " ", command.usage, "\n",
                   command.description, "\n");
  for (const char* name : command.flags) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag == nullptr) continue;
    absl::StrAppend(&text, "\n  --", Typed(name), "\n",
                    Wrapped(flag->Help(), kHelpColumns, kHelpIndent));
  }
  return text;
}

namespace {

int RunCommand(std::span<const Command* const> commands,
               std::span<const char* const> arguments) {
  if (arguments.empty()) {
    PrintError(Overview(commands));
    return 2;
  }
  const std::string_view name = arguments[0];
  if (name == "help" || AsksForHelp(name)) {
    return ShowHelp(commands, arguments.subspan(1));
  }
  if (name == "--version") {
    if (arguments.size() > 1) return UnwantedArgument(arguments[1], name);
    PrintOut(
        absl::StrCat("hakmem ", kVersion, ", revision ", Revision(), "\n"));
    return 0;
  }
  const Command* command = FindCommand(commands, name);
  if (command == nullptr) return UnknownCommand(commands, name);
  arguments = arguments.subspan(1);
  if (!arguments.empty() && AsksForHelp(arguments[0])) {
    PrintOut(Help(*command));
    return 0;
  }
  const absl::StatusOr<std::vector<std::string>> others =
      ReadFlags(*command, arguments);
  if (!others.ok()) return WrongUsage(*command, others.status());
  SetComplainer(command->name);
  if (command->resolve == nullptr) return command->run(*others);
  const absl::StatusOr<std::vector<std::string>> resolved =
      command->resolve(*others);
  return Succeeded(resolved.status()) ? command->run(*resolved)
                                      : command->usage_status;
}

}  // namespace

int RunCommandLine(std::span<const Command* const> commands,
                   std::span<const char* const> arguments) {
  int status = kNotDone;
  try {
    status = RunCommand(commands, arguments);
  } catch (const std::bad_alloc&) {
    Complain("there is not enough memory for its input");
  }
  if (OutputError() == 0) return status;
  PrintError(absl::StrCat("hakmem: standard output cannot be written: ",
                          std::strerror(OutputError()), "\n"));
  return status == 0 ? 1 : status;
}

}  // namespace hakmem::tools
