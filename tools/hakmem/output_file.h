// A file that a subcommand writes beside its report.
#ifndef HAKMEM_TOOLS_HAKMEM_OUTPUT_FILE_H_
#define HAKMEM_TOOLS_HAKMEM_OUTPUT_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hakmem::tools {

// Replaces its content; a file that cannot be written whole is removed. The
// error is for a terminal, with the file's name.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

// Makes a file: whole, or not at all. What lies there is replaced; a symbolic
// link, which others may have put there, is never followed.
absl::Status WriteNewFile(const std::string& path, std::string_view bytes);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_OUTPUT_FILE_H_
