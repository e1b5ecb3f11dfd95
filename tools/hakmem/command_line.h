// The subcommands of `hakmem` and the reading of their command lines.
//
// A subcommand's flags are ordinary abseil flags; each subcommand lists the
// names of its own, so that `hakmem explain --limit=…` is an error and not
// silently ignored, and so that help shows what belongs together.
#ifndef HAKMEM_TOOLS_HAKMEM_COMMAND_LINE_H_
#define HAKMEM_TOOLS_HAKMEM_COMMAND_LINE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hakmem::tools {

// Exit statuses of all commands but run.
inline constexpr int kDone = 0;
inline constexpr int kNotDone = 1;
inline constexpr int kWrongUsage = 2;

// Complain (output.h), and return the status.
int NotDone(std::string_view why);
int WrongUsage(std::string_view why);

enum class FlagsEnd {
  kNever,            // flags may stand between the arguments; -- ends them
  kAtFirstArgument,  // what follows belongs to another program
};

struct Command {
  std::string_view name;
  std::string_view summary;            // one line
  std::string_view usage;              // what follows the name
  std::string_view description;        // paragraphs, behind a newline
  std::span<const char* const> flags;  // names of abseil flags
  int (*run)(const std::vector<std::string>& arguments) = nullptr;
  // Names of processes become numbers before that (process_names.h).
  absl::StatusOr<std::vector<std::string>> (*resolve)(
      const std::vector<std::string>& arguments) = nullptr;
  FlagsEnd flags_end = FlagsEnd::kNever;
  int usage_status = kWrongUsage;  // exit status of a wrong command line
};

// Sets the flags of `command` from `arguments` and returns the other arguments.
// The error is a sentence that says what is wrong.
absl::StatusOr<std::vector<std::string>> ReadFlags(
    const Command& command, std::span<const char* const> arguments);

// For `hakmem help` and `hakmem help NAME`.
std::string Overview(std::span<const Command* const> commands);
std::string Help(const Command& command);

// Runs what the command line says; returns the exit status.
int RunCommandLine(std::span<const Command* const> commands,
                   std::span<const char* const> arguments);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_COMMAND_LINE_H_
