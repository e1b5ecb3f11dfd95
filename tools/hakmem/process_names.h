// Processes by the names of their programs.
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_NAMES_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hakmem::tools {

// With the numbers of processes in place of a program's name, or its thread's:
// of those that run on hakmem and may be read. A number and a path with
// a slash stay as they are, as does a name that nobody has.
absl::StatusOr<std::vector<std::string>> ProcessesNamed(
    const std::vector<std::string>& arguments);

// The same where each name has to be one process's. The error, of several, is a
// sentence.
absl::StatusOr<std::vector<std::string>> EachOneProcess(
    const std::vector<std::string>& arguments);
// Of the first argument alone.
absl::StatusOr<std::vector<std::string>> OneProcessNamed(
    const std::vector<std::string>& arguments);

// What is said of a name that nobody has: a sentence.
std::string NobodyNamed(std::string_view name);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_NAMES_H_
