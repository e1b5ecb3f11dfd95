// The environment that `hakmem run` gives a program, and where its libraries
// are.
#ifndef HAKMEM_TOOLS_HAKMEM_ENVIRONMENT_H_
#define HAKMEM_TOOLS_HAKMEM_ENVIRONMENT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hakmem::tools {

// "libhakmem-tracing.so" for "tracing"; an error for what is no variant.
absl::StatusOr<std::string> LibraryName(std::string_view variant);

// The absolute path of a variant's library: in $HAKMEM_LIBRARY_DIR, beside this
// program, in ../lib, ../lib64 or ../lib/TRIPLET of its folder, in its
// runfiles, or where a build of the repository puts it. The error names the
// places.
absl::StatusOr<std::string> FindLibrary(std::string_view variant);

// glibc's loader puts the name of its own folder in the place of $LIB, and the
// rest leads from there to the root. musl's looks for a file of that name,
// finds none, and goes on: what is not for it is not loaded into a child on
// musl. `library` itself where no such name leads to it from glibc's `folder`.
std::string NameForGlibc(const std::string& library, const std::string& folder);

class Environment {
 public:
  // From NAME=VALUE entries, ended by a null pointer.
  explicit Environment(const char* const* entries);

  bool Has(const std::string& name) const { return values_.contains(name); }
  std::string Get(const std::string& name) const;
  void Set(const std::string& name, std::string value);

  // Puts `library` before what LD_PRELOAD names already.
  void Preload(const std::string& library);

  // Sets an option of hakmem's from NAME=VALUE; NAME may leave out HAKMEM_. An
  // error when hakmem would not take it.
  absl::Status SetOption(std::string_view assignment);

  std::vector<std::string> Entries() const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_ENVIRONMENT_H_
