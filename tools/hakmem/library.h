// Where hakmem's libraries are.
#ifndef HAKMEM_TOOLS_HAKMEM_LIBRARY_H_
#define HAKMEM_TOOLS_HAKMEM_LIBRARY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hakmem::tools {

// "libhakmem-tracing.so" for "tracing"; an error for what is no variant.
absl::StatusOr<std::string> LibraryName(std::string_view variant);

// The absolute path of a variant's library: in $HAKMEM_LIBRARY_DIR, beside this
// program, in ../lib, ../lib64 or ../lib/TRIPLET of its folder, in its
// runfiles, or where a build of the repository puts it. The error names the
// places.
absl::StatusOr<std::string> FindLibrary(std::string_view variant);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_LIBRARY_H_
