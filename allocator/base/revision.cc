#include "allocator/base/revision.h"

// Bazel compiles a stamp without the library's flags. Without this note of
// checked branches (copts.bzl) the product would have none: linkers have it of
// all objects or not at all. The code has no target of an indirect branch.
#if defined(HAK_AMALGAMATED)
// All is compiled with the same flags.
#elif defined(BUILD_SCM_REVISION) && defined(__x86_64__) && !defined(__CET__)
asm(".pushsection .note.gnu.property, \"a\"\n.p2align 3\n"
    ".long 4, 16, 5, 0x554e47, 0xc0000002, 4, 3, 0\n.popsection");
#elif defined(BUILD_SCM_REVISION) && defined(__aarch64__) && \
    !defined(__ARM_FEATURE_BTI_DEFAULT)
asm(".pushsection .note.gnu.property, \"a\"\n.p2align 3\n"
    ".long 4, 16, 5, 0x554e47, 0xc0000000, 4, 3, 0\n.popsection");
#endif

namespace hakmem {

// Bazel defines it for stamps alone, tools/amalgamate.py for all that is made.
#if defined(BUILD_SCM_REVISION)
const char* Revision() {
  // Bazel's own values, where a project tells it nothing: "" and "0".
  return sizeof(BUILD_SCM_REVISION) > 2 ? BUILD_SCM_REVISION : "unknown";
}
#else
[[gnu::weak]] const char* Revision() { return "unknown"; }
#endif

}  // namespace hakmem
