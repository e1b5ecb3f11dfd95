// Functions that only pass memory on: whoever called them says more. The table
// of `hakmem heap`'s frame policy (frame_policy.h).
#ifndef HAKMEM_TOOLS_HAKMEM_FRAME_TABLE_H_
#define HAKMEM_TOOLS_HAKMEM_FRAME_TABLE_H_

#include <span>
#include <string_view>

namespace hakmem::tools {

// The allocator itself, and the C and C++ functions that it replaces. A star
// at the beginning or end stands for any rest.
std::span<const std::string_view> AllocatorNames();

// Wrappers and containers, by the name with its namespaces and without
// parameters.
std::span<const std::string_view> WrapperNames();

// Parts of the paths of sources in which nothing but wrappers is.
std::span<const std::string_view> WrapperSources();

// A file of a language's runtime, and what brings the names of the language's
// functions (perf_map.h); "": another file of the runtime says so.
struct Runtime {
  std::string_view file;
  std::string_view names;
};
std::span<const Runtime> Runtimes();

// What begins each stack, and says nothing of it.
std::span<const std::string_view> StarterNames();

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FRAME_TABLE_H_
