#include "allocator/base/revision.h"

namespace hakmem {

// Bazel defines it for stamps alone, tools/amalgamate.py for all that is made.
#if defined(BUILD_SCM_REVISION)
const char kRevision[] = BUILD_SCM_REVISION;
#else
[[gnu::weak]] const char kRevision[] = "unknown";
#endif

}  // namespace hakmem
