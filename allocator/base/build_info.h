// The compiler and its flags, as it tells them itself; what a build may set.
//
// Owns: nothing. Called by: options, heap. Thread-safety: constants.
//
// The values are those of the source file that includes this header; hakmem
// is built with one set of flags, so they hold for all of it.
#ifndef HAKMEM_ALLOCATOR_BASE_BUILD_INFO_H_
#define HAKMEM_ALLOCATOR_BASE_BUILD_INFO_H_

#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/sanitizer.h"

namespace hakmem {

struct BuildInfo {
  const char* compiler;  // its name and version
  const char* architecture;
  const char* optimization;
  // The sanitizers, each with a comma before it.
  const char* address_sanitizer;
  const char* thread_sanitizer;
  const char* undefined_behavior_sanitizer;
  // The same of how the linker and a profile had part in it.
  const char* link_time_optimization;
  const char* profile;
  const char* first_refill;
};

inline constexpr BuildInfo kBuildInfo = {
// clang's __VERSION__ begins with its name.
#if defined(__clang__)
    .compiler = __VERSION__,
#else
    .compiler = "gcc " __VERSION__,
#endif
#if defined(__x86_64__)
    .architecture = "x86-64",
#elif defined(__aarch64__)
    .architecture = "aarch64",
#else
    .architecture = "unknown architecture",
#endif
#if defined(__OPTIMIZE__)
    .optimization = "optimized",
#else
    .optimization = "not optimized",
#endif
    .address_sanitizer = kAddressSanitizer ? ", AddressSanitizer" : "",
    .thread_sanitizer = kThreadSanitizer ? ", ThreadSanitizer" : "",
    .undefined_behavior_sanitizer =
        kUndefinedBehaviorSanitizer ? ", UndefinedBehaviorSanitizer" : "",
// Set beside the flags themselves, of which a compiler says nothing.
#if defined(HAK_BUILD_THIN_LTO)
    .link_time_optimization = ", ThinLTO",
#else
    .link_time_optimization = "",
#endif
#if defined(HAK_BUILD_PROFILE)
    .profile = ", profile " HAK_AS_TEXT(HAK_BUILD_PROFILE),
#else
    .profile = "",
#endif
#if defined(HAK_BUILD_FIRST_REFILL)
    .first_refill = ", first refill " HAK_AS_TEXT(HAK_BUILD_FIRST_REFILL)};
#else
    .first_refill = ""};
#endif

// --- What a build may set otherwise (docs/decisions/0033) --------------------

// Blocks that the first refill of a class takes.
#if defined(HAK_BUILD_FIRST_REFILL)
inline constexpr std::uint32_t kFirstRefill = HAK_BUILD_FIRST_REFILL;
#else
inline constexpr std::uint32_t kFirstRefill = 8;
#endif

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_BUILD_INFO_H_
