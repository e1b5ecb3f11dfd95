// Programs that the tools run and wait for.
#ifndef HAKMEM_TOOLS_HAKMEM_SUBPROCESS_H_
#define HAKMEM_TOOLS_HAKMEM_SUBPROCESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hakmem::tools {

// The path of the executable that a shell would run; "" if there is none.
std::string FindProgram(const std::string& name);

// Runs the program with `input` as its standard input and returns its standard
// output; what it says on standard error is dropped, and nothing goes to the
// network. An error if it cannot be run or does not exit with 0.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command,
                                     std::string_view input);

// A new folder in $TMPDIR, which the caller removes.
absl::StatusOr<std::string> MakeTemporaryFolder(std::string_view name);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SUBPROCESS_H_
