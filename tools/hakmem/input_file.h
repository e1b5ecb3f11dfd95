// A file that is read as far as it goes, and again when it has grown.
#ifndef HAKMEM_TOOLS_HAKMEM_INPUT_FILE_H_
#define HAKMEM_TOOLS_HAKMEM_INPUT_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hakmem::tools {

class InputFile {
 public:
  using OnBytes = std::function<void(std::string_view)>;

  // "-" is standard input.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Everything up to the end.
  absl::Status ReadAll(const OnBytes& on_bytes);

  // What is there now, without waiting. A file that is not there yet has
  // nothing. A file that was replaced or cut is read from its start.
  absl::Status ReadNew(const OnBytes& on_bytes);

  // Whether nothing more can come: the end of a pipe.
  bool ended() const { return ended_; }

 private:
  absl::Status Open(int flags);
  bool Replaced() const;

  std::string path_;
  int file_ = -1;
  bool is_regular_ = false;
  bool ended_ = false;
};

// From then on this process may have as many files open as it could.
void AllowManyFiles();

// The files that `path` stands for: itself, or all files in a folder, sorted.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path);

// The same for all names of a file; a name that no file has is its own.
using FileIdentity = std::tuple<std::uint64_t, std::uint64_t, std::string>;
FileIdentity IdentityOf(const std::string& path);

// The names without those of what has come before, which are complained of.
std::vector<std::string> EachOnce(
    const std::vector<std::string>& names,
    FileIdentity (*identity)(const std::string& name) = IdentityOf);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_INPUT_FILE_H_
