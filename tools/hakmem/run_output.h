// The files that a run's processes write for `hakmem run`.
#ifndef HAKMEM_TOOLS_HAKMEM_RUN_OUTPUT_H_
#define HAKMEM_TOOLS_HAKMEM_RUN_OUTPUT_H_

#include <cstdint>
#include <map>
#include <string>

#include "tools/hakmem/session.h"

namespace hakmem::tools {

// A file that one or, by %p in its name, many processes append to.
class RunOutput {
 public:
  RunOutput() = default;
  // What the files hold now is not this run's.
  explicit RunOutput(std::string path);

  // What has come since, by file.
  std::map<std::string, std::string> NewContent() const;

  const std::string& path() const { return path_; }

 private:
  // The files that `path_` stands for now, and their sizes.
  std::map<std::string, std::uint64_t> Files() const;

  std::string path_;
  std::map<std::string, std::uint64_t> before_;
};

// Whether a value of HAKMEM_ACE_TRACE or HAKMEM_STATS is the path of a file,
// and not a word or a file descriptor.
bool IsPath(const std::string& value);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RUN_OUTPUT_H_
