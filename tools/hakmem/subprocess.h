// Processes that the tools start and wait for, and what these need.
#ifndef HAKMEM_TOOLS_HAKMEM_SUBPROCESS_H_
#define HAKMEM_TOOLS_HAKMEM_SUBPROCESS_H_

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hakmem::tools {

// The path of the executable that a shell would run; "" if there is none.
std::string FindProgram(const std::string& name);

// Does the work in a copy of this process, and adds to `output` what it writes.
// An error if it does not come to its end: a crash of it is not this one's.
absl::Status RunApart(const std::function<void(std::FILE*)>& work,
                      std::string& output);

// A new folder in $TMPDIR, which the caller removes.
absl::StatusOr<std::string> MakeTemporaryFolder(std::string_view name);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SUBPROCESS_H_
