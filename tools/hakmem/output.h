// What a subcommand writes: standard output, complaints, and files.
#ifndef HAKMEM_TOOLS_HAKMEM_OUTPUT_H_
#define HAKMEM_TOOLS_HAKMEM_OUTPUT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hakmem::tools {

// Whose complaints follow.
void SetComplainer(std::string_view subcommand);
// On standard error: "hakmem SUBCOMMAND: TEXT".
void Complain(std::string_view text);
// Whether there is no error; complains of one.
bool Succeeded(const absl::Status& status);

// Writes at once. After a first error nothing more is written.
void PrintOut(std::string_view text);

// The errno of what could not be written; 0: all of it was.
int OutputError();

// Replaces its content; a file that cannot be written whole is removed. The
// error is for a terminal, with the file's name.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

// Makes a file: whole, or not at all. What lies there is replaced; a symbolic
// link, which others may have put there, is never followed.
absl::Status WriteNewFile(const std::string& path, std::string_view bytes);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_OUTPUT_H_
